"""Random system calls on a mount and on tmpfs: results, errnos and trees are equal, also after a remount.

The environment variable ``VFSD_EXAMPLES`` sets the number of examples. The default is a short run. A failure prints the
calls before it, and the decorator with which hypothesis repeats it.
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

from tests.mount.tmpfs_comparison import Comparison, SystemCalls
from tests.support.mounted import Mounted, mounting
from tests.support.servers import RedisServer
from tests.support.trees import differences, look_at
from vfsd.tree.change import CHUNK_SIZE

DrawnPath: TypeAlias = tuple[int, bytes | None]
"""An existing path by its number, or a name in an existing directory by the number of the directory."""

EXAMPLES = int(os.environ.get("VFSD_EXAMPLES", "30"))
STEPS = 60

GOOD_NAMES = st.sampled_from([b"a", b"b", b"c", b"d e", b"\xff\xfe", b"new\nline", b"e", b"f", b"g", b"n" * 255])
NAMES = st.one_of(GOOD_NAMES, GOOD_NAMES, st.sampled_from([b"n" * 256, b".", b"a/", b""]))
PATHS = st.tuples(st.integers(0, 31), st.one_of(st.none(), st.none(), NAMES))
"""An existing path, or a name in a directory."""
NEW_PATHS = st.tuples(st.integers(0, 31), NAMES)
"""A name in a directory. Usually it does not exist."""
EXISTING_PATHS = st.tuples(st.integers(0, 31), st.none())
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

with_open_files = precondition(lambda machine: machine.comparison.opened > 0)


class Examples:
    """A mount and a tmpfs directory. Each example has a directory in both."""

    def __init__(self, mounted: Mounted, tmpfs: Path) -> None:
        self.mounted = mounted
        self._tmpfs = tmpfs
        self.comparisons: list[Comparison] = []

    def new(self) -> Comparison:
        """Return a comparison of two new empty directories.

        They are two levels deep: a symbolic link may lead out of them, but not into those of another example.
        """
        for root in self._roots(len(self.comparisons)):
            (root / "here").mkdir(parents=True)
        tmpfs, mount = (os.fsencode(root / "here") for root in self._roots(len(self.comparisons)))
        self.comparisons.append(Comparison(tmpfs, mount))
        return self.comparisons[-1]

    def compare(self, number: int) -> None:
        """Compare the two trees of example *number*. Raises AssertionError."""
        tmpfs, mount = (look_at(os.fsencode(root)).facts for root in self._roots(number))
        found = "\n".join(differences(tmpfs, mount))
        assert not found, "\n  ".join([*self.comparisons[number].history, found])

    def _roots(self, number: int) -> tuple[Path, Path]:
        return self._tmpfs / str(number), self.mounted.path / str(number)


class FileSystemMachine(RuleBasedStateMachine):
    """Random system calls; :class:`Comparison` makes each one and compares. A subclass sets *examples*."""

    examples: Examples

    def __init__(self) -> None:
        super().__init__()
        self.number = len(self.examples.comparisons)
        self.comparison = self.examples.new()

    def resolve(self, drawn: DrawnPath) -> bytes:
        """Return the path that *drawn* means at this moment."""
        number, name = drawn
        existing = self.comparison.directories() if name is not None else self.comparison.paths()
        path = existing[number % len(existing)]
        return path if name is None else os.path.join(path, name)

    @initialize()
    def begin(self) -> None:
        """Make some files and directories first."""
        for path in (b"a", b"a/b", b"c"):
            self.comparison.call(SystemCalls.mkdir, path, 0o755)
        for path in (b"file", b"a/file", b"a/b/file"):
            self.comparison.call(SystemCalls.open, path, os.O_CREAT | os.O_RDWR, 0o644)
            self.comparison.call(SystemCalls.write, -1, b"content of " + path)
        self.comparison.call(SystemCalls.symlink, b"../a", b"c/link")

    def teardown(self) -> None:
        self.comparison.close()
        self.examples.compare(self.number)

    # --- names

    @rule(path=NEW_PATHS, mode=MODES)
    def mkdir(self, path: DrawnPath, mode: int) -> None:
        self.comparison.call(SystemCalls.mkdir, self.resolve(path), mode)

    @rule(path=PATHS)
    def rmdir(self, path: DrawnPath) -> None:
        self.comparison.call(SystemCalls.rmdir, self.resolve(path))

    @rule(path=PATHS)
    def unlink(self, path: DrawnPath) -> None:
        self.comparison.call(SystemCalls.unlink, self.resolve(path))

    @rule(to=TARGETS, path=NEW_PATHS)
    def symlink(self, to: bytes, path: DrawnPath) -> None:
        self.comparison.call(SystemCalls.symlink, to, self.resolve(path))

    @rule(path=PATHS, new=st.one_of(NEW_PATHS, PATHS), follow=st.booleans())
    def link(self, path: DrawnPath, new: DrawnPath, follow: bool) -> None:
        self.comparison.call(SystemCalls.link, self.resolve(path), self.resolve(new), follow)

    @rule(path=PATHS, new=st.one_of(NEW_PATHS, PATHS), flags=RENAME_FLAGS)
    def rename(self, path: DrawnPath, new: DrawnPath, flags: int) -> None:
        self.comparison.call(SystemCalls.rename, self.resolve(path), self.resolve(new), flags)

    @rule(path=EXISTING_PATHS, new=NEW_PATHS)
    def move(self, path: DrawnPath, new: DrawnPath) -> None:
        self.comparison.call(SystemCalls.rename, self.resolve(path), self.resolve(new), 0)

    @rule(path=EXISTING_PATHS, other=EXISTING_PATHS, flags=st.sampled_from([0, 2]))
    def replace_or_exchange(self, path: DrawnPath, other: DrawnPath, flags: int) -> None:
        self.comparison.call(SystemCalls.rename, self.resolve(path), self.resolve(other), flags)

    @rule(path=EXISTING_PATHS, new=NEW_PATHS)
    def link_again(self, path: DrawnPath, new: DrawnPath) -> None:
        self.comparison.call(SystemCalls.link, self.resolve(path), self.resolve(new), False)

    @rule(path=NEW_PATHS, mode=MODES)
    def mkfifo(self, path: DrawnPath, mode: int) -> None:
        self.comparison.call(SystemCalls.mkfifo, self.resolve(path), mode)

    # --- reading

    @rule(path=PATHS, follow=st.booleans())
    def stat(self, path: DrawnPath, follow: bool) -> None:
        self.comparison.call(SystemCalls.stat, self.resolve(path), follow)

    @rule(path=PATHS)
    def listdir(self, path: DrawnPath) -> None:
        self.comparison.call(SystemCalls.listdir, self.resolve(path))

    @rule(path=PATHS)
    def readlink(self, path: DrawnPath) -> None:
        self.comparison.call(SystemCalls.readlink, self.resolve(path))

    # --- attributes

    @rule(path=PATHS, mode=MODES)
    def chmod(self, path: DrawnPath, mode: int) -> None:
        self.comparison.call(SystemCalls.chmod, self.resolve(path), mode)

    @rule(path=PATHS, atime=TIMES, mtime=TIMES, follow=st.booleans())
    def utime(self, path: DrawnPath, atime: int, mtime: int, follow: bool) -> None:
        self.comparison.call(SystemCalls.utime, self.resolve(path), atime, mtime, follow)

    @rule(path=PATHS, size=POSITIONS)
    def truncate(self, path: DrawnPath, size: int) -> None:
        self.comparison.call(SystemCalls.truncate, self.resolve(path), size)

    # --- open files

    @rule(path=PATHS, access=ACCESS, flags=OPEN_FLAGS, mode=MODES)
    def open(self, path: DrawnPath, access: int, flags: set[int], mode: int) -> None:
        self.comparison.call(SystemCalls.open, self.resolve(path), access | sum(flags), mode)

    @rule(path=EXISTING_PATHS, access=ACCESS)
    def open_truncating(self, path: DrawnPath, access: int) -> None:
        self.comparison.call(SystemCalls.open, self.resolve(path), access | os.O_TRUNC, 0)

    @rule(path=NEW_PATHS, flags=st.sampled_from([0, os.O_APPEND]), data=DATA, mode=MODES)
    def create_and_write(self, path: DrawnPath, flags: int, data: bytes, mode: int) -> None:
        """Make files with content more often than the other rules do."""
        before = self.comparison.opened
        self.comparison.call(SystemCalls.open, self.resolve(path), os.O_CREAT | os.O_RDWR | flags, mode)
        if self.comparison.opened > before:
            self.comparison.call(SystemCalls.write, self.comparison.opened - 1, data)

    @with_open_files
    @rule(index=INDEXES)
    def close(self, index: int) -> None:
        self.comparison.call(SystemCalls.close, index)

    @with_open_files
    @rule(index=INDEXES)
    def dup(self, index: int) -> None:
        self.comparison.call(SystemCalls.dup, index)

    @with_open_files
    @rule(index=INDEXES, count=POSITIONS)
    def read(self, index: int, count: int) -> None:
        self.comparison.call(SystemCalls.read, index, count)

    @with_open_files
    @rule(index=INDEXES, data=DATA)
    def write(self, index: int, data: bytes) -> None:
        self.comparison.call(SystemCalls.write, index, data)

    @with_open_files
    @rule(index=INDEXES, count=POSITIONS, offset=POSITIONS)
    def pread(self, index: int, count: int, offset: int) -> None:
        self.comparison.call(SystemCalls.pread, index, count, offset)

    @with_open_files
    @rule(index=INDEXES, data=DATA, offset=POSITIONS)
    def pwrite(self, index: int, data: bytes, offset: int) -> None:
        self.comparison.call(SystemCalls.pwrite, index, data, offset)

    @with_open_files
    @rule(index=INDEXES, offset=POSITIONS, whence=st.sampled_from([os.SEEK_SET, os.SEEK_CUR, os.SEEK_END]))
    def lseek(self, index: int, offset: int, whence: int) -> None:
        self.comparison.call(SystemCalls.lseek, index, offset, whence)

    @with_open_files
    @rule(index=INDEXES, size=POSITIONS)
    def ftruncate(self, index: int, size: int) -> None:
        self.comparison.call(SystemCalls.ftruncate, index, size)

    @with_open_files
    @rule(index=INDEXES, mode=MODES)
    def fchmod(self, index: int, mode: int) -> None:
        self.comparison.call(SystemCalls.fchmod, index, mode)

    @with_open_files
    @rule(index=INDEXES)
    def fstat(self, index: int) -> None:
        self.comparison.call(SystemCalls.fstat, index)

    @with_open_files
    @rule(index=INDEXES)
    def fsync(self, index: int) -> None:
        self.comparison.call(SystemCalls.fsync, index)

    @with_open_files
    @rule(index=INDEXES, data=DATA, position=POSITIONS)
    def store_by_mapping(self, index: int, data: bytes, position: int) -> None:
        self.comparison.call(SystemCalls.store_by_mapping, index, data, position)


@pytest.fixture
def tmpfs() -> Iterator[Path]:
    """Yield a new directory on tmpfs."""
    path = Path(tempfile.mkdtemp(prefix="vfsd-comparison-", dir="/dev/shm"))
    yield path
    shutil.rmtree(path)


def test_results_and_trees_equal_those_of_tmpfs_also_after_a_remount(
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
        examples = Examples(factory(redis_server.url), tmpfs)
        run_state_machine_as_test(type("BoundMachine", (FileSystemMachine,), {"examples": examples}), settings=limits)
        examples.mounted.remount()
        for number in range(len(examples.comparisons)):
            examples.compare(number)
