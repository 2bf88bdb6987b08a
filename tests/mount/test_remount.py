"""A tree with every kind of entry is the same after an unmount, and after the daemon was killed."""

import os
import random
import socket
import stat
from pathlib import Path

import pytest

from tests.mount.fingerprint import fingerprint
from tests.support.files import opened
from tests.support.mounted import MountFactory
from tests.support.servers import RedisServer


@pytest.fixture(params=["redis", "sqlite"])
def store(request: pytest.FixtureRequest, redis_server: RedisServer, tmp_path: Path) -> str:
    """Return the URL of a store."""
    return redis_server.url if request.param == "redis" else f"sqlite:{tmp_path}/store.db"


def _build(root: Path) -> None:
    """Make every kind of entry below *root*."""
    _build_files(root / "files")
    _build_links(root / "links")
    _build_nodes(root / "nodes")
    _build_directories(root / "directories")
    _build_attributes(root / "attributes")
    _build_history(root / "history")
    root.chmod(0o1751)
    os.utime(root, ns=(123, 456))


def _build_files(directory: Path) -> None:
    directory.mkdir()
    rng = random.Random(1)
    for size in (0, 1, 511, 512, 4096, 16_383, 16_384, 16_385, 100_000, 3 << 20):
        (directory / f"{size}").write_bytes(rng.randbytes(size))
    (directory / "zeros").write_bytes(bytes(100_000))
    with opened(directory / "sparse", os.O_RDWR | os.O_CREAT) as fd:
        for offset in (0, 1 << 20, 1 << 33, (1 << 40) - 3):
            os.pwrite(fd, b"data", offset)
        os.ftruncate(fd, 1 << 20)
        os.pwrite(fd, b"more", 1 << 21)
    os.truncate(directory / "100000", 20_001)
    os.truncate(directory / "100000", 60_000)
    with opened(directory / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND) as fd:
        for number in range(50):
            os.write(fd, b"line %d\n" % number)


def _build_links(directory: Path) -> None:
    (directory / "directory").mkdir(parents=True)
    (directory / "first").write_bytes(b"one content")
    os.link(directory / "first", directory / "second")
    os.link(directory / "first", directory / "directory" / "third")
    (directory / "dangling").symlink_to("nowhere")
    (directory / "long").symlink_to("t" * 4095)
    os.symlink(b"\xff\n\x01", os.fsencode(directory / "odd"))
    os.link(directory / "odd", directory / "odd too", follow_symlinks=False)
    os.chown(directory / "odd", 3, 4, follow_symlinks=False)
    os.utime(directory / "odd", ns=(-5, 7), follow_symlinks=False)


def _build_nodes(directory: Path) -> None:
    directory.mkdir()
    os.mkfifo(directory / "fifo", 0o620)
    os.mknod(directory / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(directory / "disk", stat.S_IFBLK | 0o600, os.makedev(300, 70_000))
    os.mknod(directory / "plain", stat.S_IFREG | 0o444)
    before = Path.cwd()
    os.chdir(directory)
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("socket")
    finally:
        os.chdir(before)


def _build_directories(directory: Path) -> None:
    (directory / "empty").mkdir(parents=True)
    deepest = directory
    for number in range(40):
        deepest /= f"{number}"
        deepest.mkdir()
    base = os.fsencode(directory / "names")
    os.mkdir(base)
    for name in [bytes([byte]) for byte in range(1, 256) if byte not in b"./"] + [b"n" * 255, b"...", b"\xc3\xa4"]:
        with open(os.path.join(base, name), "wb") as file:
            file.write(name)
    (directory / "many").mkdir()
    for number in range(300):
        (directory / "many" / f"{number}").touch()
    for number in range(0, 300, 3):
        (directory / "many" / f"{number}").unlink()
    (directory / "many" / "1").rename(directory / "many" / "renamed")


def _build_attributes(directory: Path) -> None:
    directory.mkdir(mode=0o2775)
    os.chown(directory, 0, 4321)
    directory.chmod(0o2775)
    for bit in range(12):
        (directory / f"mode {bit}").touch()
        (directory / f"mode {bit}").chmod(1 << bit)
    (directory / "inherits").mkdir()
    for number, (atime, mtime) in enumerate([(0, 0), (-1, -(10**18)), (2**33 * 10**9 + 1, 999_999_999), (1, 2)]):
        (directory / f"time {number}").touch()
        os.chown(directory / f"time {number}", 0xFFFF_FFFE - number, number)
        os.utime(directory / f"time {number}", ns=(atime, mtime))
    (directory / "xattrs").touch()
    os.setxattr(directory / "xattrs", "user.large", b"x" * 50_000)
    os.setxattr(directory / "xattrs", "user.empty", b"")
    os.setxattr(directory / "xattrs", "trusted.odd", bytes(range(256)))
    os.setxattr(directory, "user.directory", b"too")


def _build_history(directory: Path) -> None:
    """Rename, replace and remove entries: only the final state remains."""
    (directory / "a" / "b").mkdir(parents=True)
    (directory / "c").mkdir()
    (directory / "a" / "b" / "file").write_bytes(b"moved twice")
    (directory / "a" / "b").rename(directory / "c" / "b")
    (directory / "c" / "b" / "file").rename(directory / "file")
    (directory / "draft").write_bytes(b"replaces")
    (directory / "draft").rename(directory / "file")
    (directory / "gone").write_bytes(b"x" * 50_000)
    (directory / "gone").unlink()
    (directory / "a").rmdir()


def test_the_tree_is_the_same_after_a_remount_and_after_a_kill(mount: MountFactory, store: str) -> None:
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


def test_after_a_kill_only_the_files_with_a_name_are_left(mount: MountFactory, store: str) -> None:
    """The inode number of a file without a name is not used again."""
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


def test_work_continues_after_each_kill(mount: MountFactory, store: str) -> None:
    mounted = mount(store)
    for number in range(5):
        with opened(mounted.path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND) as fd:
            os.write(fd, b"%d\n" % number)
        (mounted.path / f"{number}").mkdir()
        mounted.kill()
        mounted.start()
        assert (mounted.path / "log").read_bytes() == b"".join(b"%d\n" % n for n in range(number + 1))
    assert mounted.path.stat().st_nlink == 2 + 5


def test_a_tree_that_was_removed_stays_removed(mount: MountFactory, store: str) -> None:
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
