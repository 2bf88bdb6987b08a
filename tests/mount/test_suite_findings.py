"""Cases that large file system test suites cover: leaked inodes, file handles, O_DIRECT, renames during a listing.

Such a suite removes all its files at the end. Then memory and store must hold only the root directory. An inode that
is left over has a wrong lookup count or a wrong link count.
"""

import errno
import mmap
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cli import statuses
from tests.support.files import refused
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.servers import RedisServer
from tests.support.syscalls import EXCHANGE, closing_fd, name_to_handle, open_by_handle, renameat2

NAMES = [f"name-{number}" for number in range(12)]
STEPS = 1500


def _in_memory(mounted: Mounted) -> tuple[int, int]:
    """Return the number of files besides the root, and the bytes of content, in the daemon's memory."""
    (entry,) = statuses(mounted, mounted.path)
    return entry["files"], entry["bytes"]


def _keys(server: RedisServer, scope: str) -> dict[str, int]:
    """Return the lengths of all hashes of *scope* in the store, except its header and its lease."""
    prefix = f"vfsd:{{{scope}}}:"
    with server.client() as client:
        found = [key.decode() for key in client.scan_iter(match=f"{prefix}*", count=1000)]
        kept = {key.removeprefix(prefix): key for key in found}
        return {name: client.hlen(key) for name, key in kept.items() if name not in {"scope", "lease"}}


class RandomChanges:
    """Makes, links, moves, replaces, maps and removes random files below *top*, some of them while they are open."""

    def __init__(self, top: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self._open: list[int] = []
        self._directories = [top / "one", top / "two"]
        for directory in self._directories:
            directory.mkdir()

    def step(self) -> None:
        """Make one random change. A missing or an existing name is not an error here."""
        action = self._random.choice((self._write, self._open_one, self._link, self._move, self._exchange, self._map))
        try:
            action(self._path())
        except (FileNotFoundError, FileExistsError):
            self._remove(self._path())

    def close(self) -> None:
        """Close all open files."""
        while self._open:
            os.close(self._open.pop())

    def _path(self) -> Path:
        return self._random.choice(self._directories) / self._random.choice(NAMES)

    def _write(self, path: Path) -> None:
        path.write_bytes(self._random.randbytes(self._random.randrange(50_000)))

    def _open_one(self, path: Path) -> None:
        self._open.append(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        os.pwrite(self._random.choice(self._open), b"x", self._random.randrange(50_000))
        if len(self._open) > len(NAMES):
            os.close(self._open.pop(0))

    def _link(self, path: Path) -> None:
        path.hardlink_to(self._path())

    def _move(self, path: Path) -> None:
        path.rename(self._path())

    def _exchange(self, path: Path) -> None:
        renameat2(path, self._path(), EXCHANGE)

    def _map(self, path: Path) -> None:
        with path.open("r+b") as file:
            file.truncate(40_000)
            with mmap.mmap(file.fileno(), 0) as mapping:
                path.unlink()
                mapping[30_000:30_005] = b"later"

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("options", [(), ("--xattr",)], ids=["plain", "xattr"])
def test_after_all_files_are_removed_nothing_is_left(
    mount: MountFactory, redis_server: RedisServer, options: tuple[str, ...]
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    mounted = mount(redis_server.url, *options)
    changes = RandomChanges(mounted.path, seed)
    for _ in range(STEPS):
        changes.step()
    for directory in mounted.path.iterdir():
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()
    changes.close()
    wait_until(lambda: _in_memory(mounted) == (0, 0), "the kernel to forget all inodes except the root")
    assert _keys(redis_server, mounted.scope) == {"inodes": 1}
    assert mounted.path.stat().st_nlink == 2


def test_a_file_handle_opens_its_file_until_the_file_is_removed(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, "--debug")
    directory = mounted.path / "directory"
    directory.mkdir()
    (directory / "kept").write_bytes(b"content")
    (directory / "gone").write_bytes(b"content")
    kept, gone, inside = (name_to_handle(path) for path in (directory / "kept", directory / "gone", directory))
    (directory / "kept").rename(mounted.path / "moved")
    (directory / "gone").unlink()
    mounted.remount()  # afterwards the kernel knows no inode except the root

    with closing_fd(os.open(mounted.path, os.O_RDONLY)) as root:
        with closing_fd(open_by_handle(root, kept)) as fd:
            assert os.read(fd, 100) == b"content"
        with closing_fd(open_by_handle(root, inside)) as fd:
            assert os.listdir(fd) == []
            assert os.stat("..", dir_fd=fd).st_ino == mounted.path.stat().st_ino
        with refused(errno.ESTALE):
            open_by_handle(root, gone)


def _getattr_requests(mounted: Mounted, call: Callable[[], object]) -> int:
    """Return the number of getattr requests that the kernel sends because of *call*."""
    before = mounted.log.read_text().count("vfsd.fuse.trace: getattr ")
    call()
    return mounted.log.read_text().count("vfsd.fuse.trace: getattr ") - before


def test_attributes_are_not_cached_while_a_file_is_open_with_o_direct(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    # The kernel does not drop attributes that it gets during an asynchronous direct write, so it must not cache them.
    mounted = mount(redis_server.url, "--debug")
    path = mounted.path / "file"
    path.write_bytes(bytes(4096))
    path.stat()
    assert _getattr_requests(mounted, path.stat) == 0
    with closing_fd(os.open(path, os.O_RDWR | os.O_DIRECT)), closing_fd(os.open(path, os.O_RDWR | os.O_DIRECT)) as fd:
        os.fchmod(fd, 0o600)
        assert [_getattr_requests(mounted, path.stat) for _ in range(3)] == [1, 1, 1]
    wait_until(lambda: mounted.log.read_text().count("vfsd.fuse.trace: release ") == 3, "the files to be closed")
    path.stat()
    assert _getattr_requests(mounted, path.stat) == 0


@pytest.mark.parametrize("size", [0, 5])
def test_a_file_created_with_o_direct_is_an_ordinary_file(
    mount: MountFactory, redis_server: RedisServer, size: int
) -> None:
    mounted = mount(redis_server.url)
    path = mounted.path / "file"
    with closing_fd(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_DIRECT)) as fd:
        os.ftruncate(fd, size)
        assert os.fstat(fd).st_size == path.stat().st_size == size
    mounted.remount()
    assert path.read_bytes() == bytes(size)


def test_a_listing_ends_although_each_listed_file_is_renamed(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    count = 400  # enough that the kernel reads more than one page
    for number in range(count):
        (mounted.path / f"file-{number}").touch()
    listed = 0
    with os.scandir(mounted.path) as entries:
        for entry in entries:
            listed += 1
            assert listed <= count, "a file is listed again under its new name"
            (mounted.path / entry.name).rename(mounted.path / "moving")
            (mounted.path / "moving").rename(mounted.path / entry.name)
    assert listed > 0
    assert len(os.listdir(mounted.path)) == count
