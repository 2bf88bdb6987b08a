"""Random system calls on a mount and on tmpfs: the same answers, the same errnos, the same trees, also remounted.

``VFSD_EXAMPLES`` is the number of examples (a short run by default). A failure prints the calls that led to it and
the line by which hypothesis repeats it.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.mount.beside import BackgroundTasks, Side
from tests.support.mounted import Mounted, mounting
from tests.support.servers import RedisServer
from tests.support.trees import differences, look_at
from vfsd.tree.change import CHUNK_SIZE

Place: TypeAlias = tuple[int, bytes | None]

EXAMPLES = int(os.environ.get("VFSD_EXAMPLES", "30"))
STEPS = 60

GOOD_NAMES = st.sampled_from([b"a", b"b", b"c", b"d e", b"\xff\xfe", b"new\nline", b"e", b"f", b"g", b"n" * 255])
NAMES = st.one_of(GOOD_NAMES, GOOD_NAMES, st.sampled_from([b"n" * 256, b".", b"a/", b""]))
PLACES = st.tuples(st.integers(0, 31), st.one_of(st.none(), st.none(), NAMES))
"""A path of something that is there by its number; or a name in a directory by its number."""
FREE = st.tuples(st.integers(0, 31), NAMES)
"""A place more often free than not."""
THERE = st.tuples(st.integers(0, 31), st.none())
"""A place where something is."""
TARGETS = st.one_of(NAMES, st.sampled_from([b"../a", b"../b/c", b"t" * 4095, b"\xff/\xfe"]))
MODES = st.sampled_from([0o600, 0o644, 0o755, 0o2755, 0o1777, 0o6711])
POSITIONS = st.sampled_from(
    [0, 1, 5, 4095, 4096, CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 1, 3 * CHUNK_SIZE - 7, 150_000]
)
DATA = st.tuples(
    st.sampled_from([b"\0", b"x", b"yz"]),
    st.sampled_from([0, 1, 6, 4096, CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 2, 60_000]),
).map(lambda drawn: drawn[0] * drawn[1])
TIMES = st.sampled_from([0, 1, 999_999_999, 1_700_000_000_123_456_789, 4_102_444_800_000_000_001, -1])
INDEXES = st.integers(0, 7)
ACCESS = st.sampled_from([os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR])
OPEN_FLAGS = st.sets(
    st.sampled_from([os.O_CREAT, os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_NOFOLLOW, os.O_DIRECTORY])
)
RENAME_FLAGS = st.sampled_from([0, 0, 0, 1, 2, 2, 3, 8])

with_open_files = precondition(lambda machine: machine.both.opened > 0)


class Arena:
    """A mount and a tmpfs directory, with a place for each example in both."""

    def __init__(self, mounted: Mounted, tmpfs: Path) -> None:
        self.mounted = mounted
        self._tmpfs = tmpfs
        self.examples: list[BackgroundTasks] = []

    def example(self) -> BackgroundTasks:
        """Return a fresh place. It lies two levels down: a link may lead out of it, but not into another's."""
        for root in self._roots(len(self.examples)):
            (root / "here").mkdir(parents=True)
        tmpfs, mount = (os.fsencode(root / "here") for root in self._roots(len(self.examples)))
        self.examples.append(BackgroundTasks(tmpfs, mount))
        return self.examples[-1]

    def compare(self, number: int) -> None:
        """Compare the two trees of an example. Raises AssertionError."""
        tmpfs, mount = (look_at(os.fsencode(root)).facts for root in self._roots(number))
        found = "\n".join(differences(tmpfs, mount))
        assert not found, "\n  ".join([*self.examples[number].done, found])

    def _roots(self, number: int) -> tuple[Path, Path]:
        return self._tmpfs / str(number), self.mounted.path / str(number)


class Machine(RuleBasedStateMachine):
    """What may be done to files. Rules only draw; :class:`Beside` does and compares. A subclass knows the arena."""

    arena: Arena

    def __init__(self) -> None:
        super().__init__()
        self.number = len(self.arena.examples)
        self.both = self.arena.example()

    def at(self, place: Place) -> bytes:
        """Return the path that was drawn."""
        number, name = place
        there = self.both.directories() if name is not None else self.both.paths()
        path = there[number % len(there)]
        return path if name is None else os.path.join(path, name)

    @initialize()
    def begin(self) -> None:
        """Have something to work on from the start."""
        for path in (b"a", b"a/b", b"c"):
            self.both.do(Side.mkdir, path, 0o755)
        for path in (b"file", b"a/file", b"a/b/file"):
            self.both.do(Side.open, path, os.O_CREAT | os.O_RDWR, 0o644)
            self.both.do(Side.write, -1, b"content of " + path)
        self.both.do(Side.symlink, b"../a", b"c/link")

    def teardown(self) -> None:
        self.both.close()
        self.arena.compare(self.number)

    # --- names

    @rule(path=FREE, mode=MODES)
    def mkdir(self, path: Place, mode: int) -> None:
        self.both.do(Side.mkdir, self.at(path), mode)

    @rule(path=PLACES)
    def rmdir(self, path: Place) -> None:
        self.both.do(Side.rmdir, self.at(path))

    @rule(path=PLACES)
    def unlink(self, path: Place) -> None:
        self.both.do(Side.unlink, self.at(path))

    @rule(to=TARGETS, path=FREE)
    def symlink(self, to: bytes, path: Place) -> None:
        self.both.do(Side.symlink, to, self.at(path))

    @rule(path=PLACES, new=st.one_of(FREE, PLACES), follow=st.booleans())
    def link(self, path: Place, new: Place, follow: bool) -> None:
        self.both.do(Side.link, self.at(path), self.at(new), follow)

    @rule(path=PLACES, new=st.one_of(FREE, PLACES), flags=RENAME_FLAGS)
    def rename(self, path: Place, new: Place, flags: int) -> None:
        self.both.do(Side.rename, self.at(path), self.at(new), flags)

    @rule(path=THERE, new=FREE)
    def move(self, path: Place, new: Place) -> None:
        self.both.do(Side.rename, self.at(path), self.at(new), 0)

    @rule(path=THERE, other=THERE, flags=st.sampled_from([0, 2]))
    def replace_or_exchange(self, path: Place, other: Place, flags: int) -> None:
        self.both.do(Side.rename, self.at(path), self.at(other), flags)

    @rule(path=THERE, new=FREE)
    def link_again(self, path: Place, new: Place) -> None:
        self.both.do(Side.link, self.at(path), self.at(new), False)

    @rule(path=FREE, mode=MODES)
    def mkfifo(self, path: Place, mode: int) -> None:
        self.both.do(Side.mkfifo, self.at(path), mode)

    # --- looking

    @rule(path=PLACES, follow=st.booleans())
    def stat(self, path: Place, follow: bool) -> None:
        self.both.do(Side.stat, self.at(path), follow)

    @rule(path=PLACES)
    def listdir(self, path: Place) -> None:
        self.both.do(Side.listdir, self.at(path))

    @rule(path=PLACES)
    def readlink(self, path: Place) -> None:
        self.both.do(Side.readlink, self.at(path))

    # --- attributes

    @rule(path=PLACES, mode=MODES)
    def chmod(self, path: Place, mode: int) -> None:
        self.both.do(Side.chmod, self.at(path), mode)

    @rule(path=PLACES, atime=TIMES, mtime=TIMES, follow=st.booleans())
    def utime(self, path: Place, atime: int, mtime: int, follow: bool) -> None:
        self.both.do(Side.utime, self.at(path), atime, mtime, follow)

    @rule(path=PLACES, size=POSITIONS)
    def truncate(self, path: Place, size: int) -> None:
        self.both.do(Side.truncate, self.at(path), size)

    # --- open files

    @rule(path=PLACES, access=ACCESS, flags=OPEN_FLAGS, mode=MODES)
    def open(self, path: Place, access: int, flags: set[int], mode: int) -> None:
        self.both.do(Side.open, self.at(path), access | sum(flags), mode)

    @rule(path=THERE, access=ACCESS)
    def open_truncating(self, path: Place, access: int) -> None:
        self.both.do(Side.open, self.at(path), access | os.O_TRUNC, 0)

    @rule(path=FREE, flags=st.sampled_from([0, os.O_APPEND]), data=DATA, mode=MODES)
    def create_and_write(self, path: Place, flags: int, data: bytes, mode: int) -> None:
        """Have something to work on, more often than chance would have it."""
        before = self.both.opened
        self.both.do(Side.open, self.at(path), os.O_CREAT | os.O_RDWR | flags, mode)
        if self.both.opened > before:
            self.both.do(Side.write, self.both.opened - 1, data)

    @with_open_files
    @rule(index=INDEXES)
    def close(self, index: int) -> None:
        self.both.do(Side.close, index)

    @with_open_files
    @rule(index=INDEXES)
    def dup(self, index: int) -> None:
        self.both.do(Side.dup, index)

    @with_open_files
    @rule(index=INDEXES, count=POSITIONS)
    def read(self, index: int, count: int) -> None:
        self.both.do(Side.read, index, count)

    @with_open_files
    @rule(index=INDEXES, data=DATA)
    def write(self, index: int, data: bytes) -> None:
        self.both.do(Side.write, index, data)

    @with_open_files
    @rule(index=INDEXES, count=POSITIONS, offset=POSITIONS)
    def pread(self, index: int, count: int, offset: int) -> None:
        self.both.do(Side.pread, index, count, offset)

    @with_open_files
    @rule(index=INDEXES, data=DATA, offset=POSITIONS)
    def pwrite(self, index: int, data: bytes, offset: int) -> None:
        self.both.do(Side.pwrite, index, data, offset)

    @with_open_files
    @rule(index=INDEXES, offset=POSITIONS, whence=st.sampled_from([os.SEEK_SET, os.SEEK_CUR, os.SEEK_END]))
    def lseek(self, index: int, offset: int, whence: int) -> None:
        self.both.do(Side.lseek, index, offset, whence)

    @with_open_files
    @rule(index=INDEXES, size=POSITIONS)
    def ftruncate(self, index: int, size: int) -> None:
        self.both.do(Side.ftruncate, index, size)

    @with_open_files
    @rule(index=INDEXES, mode=MODES)
    def fchmod(self, index: int, mode: int) -> None:
        self.both.do(Side.fchmod, index, mode)

    @with_open_files
    @rule(index=INDEXES)
    def fstat(self, index: int) -> None:
        self.both.do(Side.fstat, index)

    @with_open_files
    @rule(index=INDEXES)
    def fsync(self, index: int) -> None:
        self.both.do(Side.fsync, index)

    @with_open_files
    @rule(index=INDEXES, data=DATA, position=POSITIONS)
    def store_by_mapping(self, index: int, data: bytes, position: int) -> None:
        self.both.do(Side.store_by_mapping, index, data, position)


@pytest.fixture
def tmpfs() -> Iterator[Path]:
    """Yield a directory on tmpfs."""
    path = Path(tempfile.mkdtemp(prefix="vfsd-beside-", dir="/dev/shm"))
    yield path
    shutil.rmtree(path)


def test_it_answers_as_tmpfs_does_and_still_holds_the_same_after_a_remount(
    redis_server: RedisServer, tmp_path: Path, tmpfs: Path
) -> None:
    limits = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    with mounting(tmp_path) as factory:
        arena = Arena(factory(redis_server.url), tmpfs)
        run_state_machine_as_test(type("MachineThere", (Machine,), {"arena": arena}), settings=limits)
        arena.mounted.remount()
        for number in range(len(arena.examples)):
            arena.compare(number)
