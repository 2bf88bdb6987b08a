"""A tree with one of everything comes back as it was: after an unmount, and after the daemon was killed."""

import os
import random
import socket
import stat
from pathlib import Path

import pytest

from tests.mount.calls import opened
from tests.mount.fingerprint import fingerprint
from tests.support.mounted import MountFactory
from tests.support.servers import RedisServer


@pytest.fixture(params=["redis", "sqlite"])
def store(request: pytest.FixtureRequest, redis_server: RedisServer, tmp_path: Path) -> str:
    """Return the URL of a store."""
    return redis_server.url if request.param == "redis" else f"sqlite:{tmp_path}/store.db"


def _build(root: Path) -> None:
    """Make one of everything below *root*."""
    _build_files(root / "files")
    _build_links(root / "links")
    _build_nodes(root / "nodes")
    _build_directories(root / "directories")
    _build_attributes(root / "attributes")
    _build_history(root / "history")
    root.chmod(0o1751)
    os.utime(root, ns=(123, 456))


def _build_files(place: Path) -> None:
    place.mkdir()
    chance = random.Random(1)
    for size in (0, 1, 511, 512, 4096, 16_383, 16_384, 16_385, 100_000, 3 << 20):
        (place / f"{size}").write_bytes(chance.randbytes(size))
    (place / "zeros").write_bytes(bytes(100_000))
    with opened(place / "sparse", os.O_RDWR | os.O_CREAT) as fd:
        for offset in (0, 1 << 20, 1 << 33, (1 << 40) - 3):
            os.pwrite(fd, b"data", offset)
        os.ftruncate(fd, 1 << 20)
        os.pwrite(fd, b"more", 1 << 21)
    os.truncate(place / "100000", 20_001)
    os.truncate(place / "100000", 60_000)
    with opened(place / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND) as fd:
        for number in range(50):
            os.write(fd, b"line %d\n" % number)


def _build_links(place: Path) -> None:
    (place / "directory").mkdir(parents=True)
    (place / "first").write_bytes(b"one content")
    os.link(place / "first", place / "second")
    os.link(place / "first", place / "directory" / "third")
    (place / "dangling").symlink_to("nowhere")
    (place / "long").symlink_to("t" * 4095)
    os.symlink(b"\xff\n\x01", os.fsencode(place / "odd"))
    os.link(place / "odd", place / "odd too", follow_symlinks=False)
    os.chown(place / "odd", 3, 4, follow_symlinks=False)
    os.utime(place / "odd", ns=(-5, 7), follow_symlinks=False)


def _build_nodes(place: Path) -> None:
    place.mkdir()
    os.mkfifo(place / "fifo", 0o620)
    os.mknod(place / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(place / "disk", stat.S_IFBLK | 0o600, os.makedev(300, 70_000))
    os.mknod(place / "plain", stat.S_IFREG | 0o444)
    before = Path.cwd()
    os.chdir(place)
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("socket")
    finally:
        os.chdir(before)


def _build_directories(place: Path) -> None:
    (place / "empty").mkdir(parents=True)
    deepest = place
    for number in range(40):
        deepest /= f"{number}"
        deepest.mkdir()
    base = os.fsencode(place / "names")
    os.mkdir(base)
    for name in [bytes([byte]) for byte in range(1, 256) if byte not in b"./"] + [b"n" * 255, b"...", b"\xc3\xa4"]:
        with open(os.path.join(base, name), "wb") as file:
            file.write(name)
    (place / "many").mkdir()
    for number in range(300):
        (place / "many" / f"{number}").touch()
    for number in range(0, 300, 3):
        (place / "many" / f"{number}").unlink()
    (place / "many" / "1").rename(place / "many" / "renamed")


def _build_attributes(place: Path) -> None:
    place.mkdir(mode=0o2775)
    os.chown(place, 0, 4321)
    place.chmod(0o2775)
    for bit in range(12):
        (place / f"mode {bit}").touch()
        (place / f"mode {bit}").chmod(1 << bit)
    (place / "inherits").mkdir()
    for number, (atime, mtime) in enumerate([(0, 0), (-1, -(10**18)), (2**33 * 10**9 + 1, 999_999_999), (1, 2)]):
        (place / f"time {number}").touch()
        os.chown(place / f"time {number}", 0xFFFF_FFFE - number, number)
        os.utime(place / f"time {number}", ns=(atime, mtime))
    (place / "xattrs").touch()
    os.setxattr(place / "xattrs", "user.large", b"x" * 50_000)
    os.setxattr(place / "xattrs", "user.empty", b"")
    os.setxattr(place / "xattrs", "trusted.odd", bytes(range(256)))
    os.setxattr(place, "user.directory", b"too")


def _build_history(place: Path) -> None:
    """What has been renamed, exchanged, replaced and removed leaves just its end."""
    (place / "a" / "b").mkdir(parents=True)
    (place / "c").mkdir()
    (place / "a" / "b" / "file").write_bytes(b"moved twice")
    (place / "a" / "b").rename(place / "c" / "b")
    (place / "c" / "b" / "file").rename(place / "file")
    (place / "draft").write_bytes(b"replaces")
    (place / "draft").rename(place / "file")
    (place / "gone").write_bytes(b"x" * 50_000)
    (place / "gone").unlink()
    (place / "a").rmdir()


def test_everything_comes_back(mount: MountFactory, store: str) -> None:
    mounted = mount(store, "--xattr", "-o", "suid,dev")
    _build(mounted.path)
    built = fingerprint(mounted.path)
    assert len(built) > 550
    assert built == fingerprint(mounted.path)
    mounted.remount()
    assert fingerprint(mounted.path) == built
    mounted.kill()
    mounted.start()
    assert fingerprint(mounted.path) == built


def test_a_killed_mount_comes_back_without_what_had_no_name(mount: MountFactory, store: str) -> None:
    """And a number that was in use is not given to another inode."""
    mounted = mount(store, "--xattr")
    (mounted.path / "file").write_bytes(b"content")
    with opened(mounted.path / "orphan", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"x" * 50_000)
        (mounted.path / "orphan").unlink()
        os.write(fd, b"memory only")
        ino = os.fstat(fd).st_ino
        before = fingerprint(mounted.path)
        mounted.kill()
    mounted.start()
    assert fingerprint(mounted.path) == before
    (mounted.path / "new").touch()
    assert (mounted.path / "new").stat().st_ino >= ino


def test_a_mount_goes_on_where_it_was_killed(mount: MountFactory, store: str) -> None:
    mounted = mount(store)
    for number in range(5):
        with opened(mounted.path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND) as fd:
            os.write(fd, b"%d\n" % number)
        (mounted.path / f"{number}").mkdir()
        mounted.kill()
        mounted.start()
        assert (mounted.path / "log").read_bytes() == b"".join(b"%d\n" % n for n in range(number + 1))
    assert mounted.path.stat().st_nlink == 2 + 5


def test_the_whole_tree_can_be_removed_and_stays_so(mount: MountFactory, store: str) -> None:
    mounted = mount(store, "--xattr", "-o", "suid,dev")
    _build_links(mounted.path / "links")
    _build_history(mounted.path / "history")
    for directory, names, files in os.walk(mounted.path, topdown=False):
        for name in files:
            Path(directory, name).unlink()
        for name in names:
            path = Path(directory, name)
            (path.unlink if path.is_symlink() else path.rmdir)()
    assert mounted.path.stat().st_nlink == 2
    mounted.remount()
    assert os.listdir(mounted.path) == []
