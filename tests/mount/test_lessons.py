"""Lessons of large suites run against a mount: what they leave behind, and what only they ask for.

Each of them ends by removing all that it made. Whatever it did in between, memory and store then hold a root
directory and no more; an inode that stays has a lookup count or a link count that went wrong on the way.
"""

import errno
import mmap
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.calls import EXCHANGE, refused
from tests.mount.commands import statuses
from tests.mount.filehandles import file_handle, open_by_handle
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.servers import RedisServer
from tests.support.syscalls import closing_fd, renameat2

NAMES = [f"name-{number}" for number in range(12)]
STEPS = 1500


def _held(mounted: Mounted) -> tuple[int, int]:
    """Return how many inodes, and how many bytes of content, the daemon holds in memory."""
    (entry,) = statuses(mounted, mounted.path)
    return entry["files"], entry["bytes"]


def _keys(server: RedisServer, scope: str) -> dict[str, int]:
    """Return the hashes that the store has for *scope*, but for its header, with their lengths."""
    prefix = f"vfsd:{{{scope}}}:"
    with server.client() as client:
        found = [key.decode() for key in client.scan_iter(match=f"{prefix}*", count=1000)]
        kept = {key.removeprefix(prefix): key for key in found}
        return {name: client.hlen(key) for name, key in kept.items() if name not in {"scope", "lease"}}


class Churn:
    """Makes, links, moves, replaces, maps and removes files at random below *top*, some of them while open."""

    def __init__(self, top: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self._open: list[int] = []
        self._directories = [top / "one", top / "two"]
        for directory in self._directories:
            directory.mkdir()

    def step(self) -> None:
        """Do one thing; what is refused (no such name, one that is taken) is of no interest here."""
        action = self._random.choice((self._write, self._open_one, self._link, self._move, self._exchange, self._map))
        try:
            action(self._place())
        except (FileNotFoundError, FileExistsError):
            self._remove(self._place())

    def close(self) -> None:
        """Close all that is open."""
        while self._open:
            os.close(self._open.pop())

    def _place(self) -> Path:
        return self._random.choice(self._directories) / self._random.choice(NAMES)

    def _write(self, place: Path) -> None:
        place.write_bytes(self._random.randbytes(self._random.randrange(50_000)))

    def _open_one(self, place: Path) -> None:
        self._open.append(os.open(place, os.O_RDWR | os.O_CREAT, 0o600))
        os.pwrite(self._random.choice(self._open), b"x", self._random.randrange(50_000))
        if len(self._open) > len(NAMES):
            os.close(self._open.pop(0))

    def _link(self, place: Path) -> None:
        place.hardlink_to(self._place())

    def _move(self, place: Path) -> None:
        place.rename(self._place())

    def _exchange(self, place: Path) -> None:
        renameat2(place, self._place(), EXCHANGE)

    def _map(self, place: Path) -> None:
        with place.open("r+b") as file:
            file.truncate(40_000)
            with mmap.mmap(file.fileno(), 0) as mapping:
                place.unlink()
                mapping[30_000:30_005] = b"later"

    def _remove(self, place: Path) -> None:
        place.unlink(missing_ok=True)


@pytest.mark.parametrize("options", [(), ("--xattr",)], ids=["plain", "xattr"])
def test_nothing_is_left_once_all_is_removed(
    mount: MountFactory, redis_server: RedisServer, options: tuple[str, ...]
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    mounted = mount(redis_server.url, *options)
    churn = Churn(mounted.path, seed)
    for _ in range(STEPS):
        churn.step()
    for directory in mounted.path.iterdir():
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()
    churn.close()
    wait_until(lambda: _held(mounted) == (1, 0), "the kernel to let go of all inodes but the root")
    assert _keys(redis_server, mounted.scope) == {"inodes": 1}
    assert mounted.path.stat().st_nlink == 2


def test_a_file_handle_leads_to_its_file_for_as_long_as_that_exists(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    mounted = mount(redis_server.url, "--debug")
    directory = mounted.path / "directory"
    directory.mkdir()
    (directory / "kept").write_bytes(b"content")
    (directory / "gone").write_bytes(b"content")
    kept, gone, inside = (file_handle(path) for path in (directory / "kept", directory / "gone", directory))
    (directory / "kept").rename(mounted.path / "moved")
    (directory / "gone").unlink()
    mounted.remount()  # so that the kernel knows no inode but the root

    with closing_fd(os.open(mounted.path, os.O_RDONLY)) as root:
        with closing_fd(open_by_handle(root, kept)) as fd:
            assert os.read(fd, 100) == b"content"
        with closing_fd(open_by_handle(root, inside)) as fd:
            assert os.listdir(fd) == []
            assert os.stat("..", dir_fd=fd).st_ino == mounted.path.stat().st_ino
        with refused(errno.ESTALE):
            open_by_handle(root, gone)


def _asked(mounted: Mounted, call: Callable[[], object]) -> int:
    """Return how often the kernel asks for attributes because of *call*."""
    before = mounted.log.read_text().count("vfsd.fuse.trace: getattr ")
    call()
    return mounted.log.read_text().count("vfsd.fuse.trace: getattr ") - before


def test_attributes_are_not_kept_while_a_file_is_open_with_o_direct(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    # What the kernel learns while an asynchronous direct write is under way it never drops: it must not keep it.
    mounted = mount(redis_server.url, "--debug")
    path = mounted.path / "file"
    path.write_bytes(bytes(4096))
    path.stat()
    assert _asked(mounted, path.stat) == 0
    with closing_fd(os.open(path, os.O_RDWR | os.O_DIRECT)), closing_fd(os.open(path, os.O_RDWR | os.O_DIRECT)) as fd:
        os.fchmod(fd, 0o600)
        assert [_asked(mounted, path.stat) for _ in range(3)] == [1, 1, 1]
    wait_until(lambda: mounted.log.read_text().count("vfsd.fuse.trace: release ") == 3, "the files to be closed")
    path.stat()
    assert _asked(mounted, path.stat) == 0


@pytest.mark.parametrize("size", [0, 5])
def test_a_new_file_made_with_o_direct_is_like_any_other(
    mount: MountFactory, redis_server: RedisServer, size: int
) -> None:
    mounted = mount(redis_server.url)
    path = mounted.path / "file"
    with closing_fd(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_DIRECT)) as fd:
        os.ftruncate(fd, size)
        assert os.fstat(fd).st_size == path.stat().st_size == size
    mounted.remount()
    assert path.read_bytes() == bytes(size)


def test_a_listing_ends_although_each_file_it_shows_is_renamed(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    count = 400  # so many that the kernel asks for more than one page
    for number in range(count):
        (mounted.path / f"file-{number}").touch()
    shown = 0
    with os.scandir(mounted.path) as entries:
        for entry in entries:
            shown += 1
            assert shown <= count, "a file is listed again under its new name"
            (mounted.path / entry.name).rename(mounted.path / "moving")
            (mounted.path / "moving").rename(mounted.path / entry.name)
    assert shown > 0
    assert len(os.listdir(mounted.path)) == count
