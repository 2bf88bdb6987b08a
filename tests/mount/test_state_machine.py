"""Random system calls on a mount and on tmpfs: the same answers, the same errnos, the same trees, also remounted.

``VFSD_EXAMPLES`` is the number of examples (a short run by default). A failure prints the calls that led to it and
the line by which hypothesis repeats it.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from tests.mount.beside import Beside, Side
from tests.support.mounted import Mounted, mounting
from tests.support.servers import RedisServer
from tests.support.trees import differences, look_at
from vfsd.tree.change import CHUNK_SIZE

EXAMPLES = int(os.environ.get("VFSD_EXAMPLES", "30"))
STEPS = 60

NAMES = st.sampled_from([b"a", b"b", b"c", b"d e", b"\xff\xfe", b"new\nline", b"."])
PATHS = st.one_of(
    NAMES,
    NAMES,
    st.tuples(NAMES, NAMES).map(b"/".join),
    st.tuples(NAMES, NAMES, NAMES).map(b"/".join),
    st.sampled_from([b"n" * 255, b"n" * 256, b"a/", b""]),
)
TARGETS = st.one_of(PATHS, st.sampled_from([b"../a", b"t" * 4095, b"\xff/\xfe"]))
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
        self.examples: list[Beside] = []

    def example(self) -> Beside:
        """Return a fresh place. It lies two levels down: a link may lead out of it, but not into another's."""
        for root in self._roots(len(self.examples)):
            (root / "here").mkdir(parents=True)
        tmpfs, mount = (os.fsencode(root / "here") for root in self._roots(len(self.examples)))
        self.examples.append(Beside(tmpfs, mount))
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

    def teardown(self) -> None:
        self.both.close()
        self.arena.compare(self.number)

    # --- names

    @rule(path=PATHS, mode=MODES)
    def mkdir(self, path: bytes, mode: int) -> None:
        self.both.do(Side.mkdir, path, mode)

    @rule(path=PATHS)
    def rmdir(self, path: bytes) -> None:
        self.both.do(Side.rmdir, path)

    @rule(path=PATHS)
    def unlink(self, path: bytes) -> None:
        self.both.do(Side.unlink, path)

    @rule(to=TARGETS, path=PATHS)
    def symlink(self, to: bytes, path: bytes) -> None:
        self.both.do(Side.symlink, to, path)

    @rule(path=PATHS, new=PATHS, follow=st.booleans())
    def link(self, path: bytes, new: bytes, follow: bool) -> None:
        self.both.do(Side.link, path, new, follow)

    @rule(path=PATHS, new=PATHS, flags=RENAME_FLAGS)
    def rename(self, path: bytes, new: bytes, flags: int) -> None:
        self.both.do(Side.rename, path, new, flags)

    @rule(path=PATHS, mode=MODES)
    def mkfifo(self, path: bytes, mode: int) -> None:
        self.both.do(Side.mkfifo, path, mode)

    # --- looking

    @rule(path=PATHS, follow=st.booleans())
    def stat(self, path: bytes, follow: bool) -> None:
        self.both.do(Side.stat, path, follow)

    @rule(path=PATHS)
    def listdir(self, path: bytes) -> None:
        self.both.do(Side.listdir, path)

    @rule(path=PATHS)
    def readlink(self, path: bytes) -> None:
        self.both.do(Side.readlink, path)

    # --- attributes

    @rule(path=PATHS, mode=MODES)
    def chmod(self, path: bytes, mode: int) -> None:
        self.both.do(Side.chmod, path, mode)

    @rule(path=PATHS, atime=TIMES, mtime=TIMES, follow=st.booleans())
    def utime(self, path: bytes, atime: int, mtime: int, follow: bool) -> None:
        self.both.do(Side.utime, path, atime, mtime, follow)

    @rule(path=PATHS, size=POSITIONS)
    def truncate(self, path: bytes, size: int) -> None:
        self.both.do(Side.truncate, path, size)

    # --- open files

    @rule(path=PATHS, access=ACCESS, flags=OPEN_FLAGS, mode=MODES)
    def open(self, path: bytes, access: int, flags: set[int], mode: int) -> None:
        self.both.do(Side.open, path, access | sum(flags), mode)

    @rule(path=PATHS, flags=st.sampled_from([0, os.O_APPEND]), data=DATA, mode=MODES)
    def create_and_write(self, path: bytes, flags: int, data: bytes, mode: int) -> None:
        """Have something to work on, more often than chance would have it."""
        before = self.both.opened
        self.both.do(Side.open, path, os.O_CREAT | os.O_RDWR | flags, mode)
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
