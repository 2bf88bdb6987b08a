"""Links, pipes, sockets and devices."""

import os
import socket
import stat
import threading
from errno import EEXIST, EINVAL, ELOOP, ENAMETOOLONG, ENOENT, ENXIO, EPERM
from pathlib import Path

from tests.mount.calls import let_tick, opened, permissions, refused


def symlinks(place: Path) -> None:
    link = place / "link"
    link.symlink_to("target")
    info = link.lstat()
    assert stat.S_ISLNK(info.st_mode)
    assert info.st_size == 6
    assert permissions(link) == 0o777
    assert os.readlink(link) == "target"
    (place / "target").write_bytes(b"content")
    assert link.read_bytes() == b"content"
    with refused(ELOOP), opened(link, os.O_RDONLY | os.O_NOFOLLOW):
        pass
    with refused(EINVAL):
        os.readlink(place / "target")
    with refused(EEXIST):
        link.symlink_to("other")
    link.unlink()
    assert (place / "target").exists()


def symlink_targets_of_any_bytes(place: Path) -> None:
    longest = "/".join(["t" * 255] * 16)[:4095]
    (place / "longest").symlink_to(longest)
    assert os.readlink(place / "longest") == longest
    assert (place / "longest").lstat().st_size == 4095
    with refused(ENAMETOOLONG):
        os.symlink("t" * 4096, place / "too long")
    odd = b"\xff\n //../ \x01"
    os.symlink(odd, os.fsencode(place / "odd"))
    assert os.readlink(os.fsencode(place / "odd")) == odd


def dangling_and_looping_symlinks(place: Path) -> None:
    dangling, loop, pool = place / "dangling", place / "loop", place / "pool"
    dangling.symlink_to("missing")
    loop.symlink_to("pool")
    pool.symlink_to("loop")
    with refused(ENOENT):
        dangling.stat()
    for path in (loop, pool, loop / "below"):
        with refused(ELOOP):
            path.stat()
    dangling.write_bytes(b"made through the link")
    assert (place / "missing").read_bytes() == b"made through the link"
    with refused(EEXIST), opened(dangling, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
        pass


def symlinks_to_directories(place: Path) -> None:
    (place / "directory").mkdir()
    (place / "link").symlink_to("directory")
    (place / "link" / "file").touch()
    assert (place / "directory" / "file").exists()
    assert (place / "link" / "..").stat().st_ino == place.stat().st_ino
    (place / "absolute").symlink_to(place / "directory")
    assert os.listdir(place / "absolute") == ["file"]
    os.chown(place / "link", 7, 8, follow_symlinks=False)
    assert ((place / "link").lstat().st_uid, (place / "directory").stat().st_uid) == (7, 0)
    os.utime(place / "link", ns=(5, 6), follow_symlinks=False)
    assert (place / "link").lstat().st_mtime_ns == 6


def hard_links(place: Path) -> None:
    first, second = place / "first", place / "directory" / "second"
    second.parent.mkdir()
    first.write_bytes(b"content")
    os.link(first, second)
    assert first.samefile(second)
    assert first.stat() == second.stat()
    assert first.stat().st_nlink == 2
    second.write_bytes(b"through the other")
    second.chmod(0o611)
    assert first.read_bytes() == b"through the other"
    assert permissions(first) == 0o611
    first.unlink()
    assert second.stat().st_nlink == 1
    assert second.read_bytes() == b"through the other"
    with refused(EPERM):
        os.link(place / "directory", place / "directory link")


def hard_links_and_change_times(place: Path) -> None:
    first, second = place / "first", place / "second"
    first.touch()
    made = let_tick()
    before = first.stat()
    os.link(first, second)
    linked = first.stat()
    assert linked.st_ctime_ns > made
    assert linked.st_mtime_ns == before.st_mtime_ns
    made = let_tick()
    second.unlink()
    assert first.stat().st_ctime_ns > made
    assert first.stat().st_mtime_ns == before.st_mtime_ns


def hard_links_to_symlinks_and_pipes(place: Path) -> None:
    (place / "link").symlink_to("nowhere")
    os.link(place / "link", place / "link too", follow_symlinks=False)
    assert os.readlink(place / "link too") == "nowhere"
    os.mkfifo(place / "fifo")
    os.link(place / "fifo", place / "fifo too")
    assert (place / "fifo too").is_fifo()
    assert (place / "fifo").stat().st_nlink == (place / "link").lstat().st_nlink == 2


def many_hard_links(place: Path) -> None:
    first = place / "first"
    first.touch()
    for number in range(1000):
        os.link(first, place / f"{number}")
    assert first.stat().st_nlink == 1001


def fifos(place: Path) -> None:
    fifo = place / "fifo"
    os.mkfifo(fifo, 0o640)
    assert fifo.is_fifo()
    assert permissions(fifo) == 0o640
    with refused(ENXIO), opened(fifo, os.O_WRONLY | os.O_NONBLOCK):
        pass
    writing = threading.Thread(target=fifo.write_bytes, args=(b"through the pipe",))
    writing.start()
    assert fifo.read_bytes() == b"through the pipe"
    writing.join()
    assert fifo.stat().st_size == 0
    with refused(EEXIST):
        os.mkfifo(fifo)


def sockets(place: Path) -> None:
    before = Path.cwd()
    os.chdir(place)  # a socket's path has room for 107 bytes only
    try:
        with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as calling:
            listening.bind("socket")
            listening.listen()
            assert Path("socket").is_socket()
            calling.connect("socket")
            with listening.accept()[0] as answering:
                answering.sendall(b"hello")
                assert calling.recv(10) == b"hello"
    finally:
        os.chdir(before)
    assert (place / "socket").is_socket()
    (place / "socket").unlink()


def device_nodes(place: Path) -> None:
    null, disk, large = place / "null", place / "disk", place / "large"
    os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(disk, stat.S_IFBLK | 0o600, os.makedev(7, 200))
    os.mknod(large, stat.S_IFCHR | 0o600, os.makedev(300, 70_000))
    assert (null.is_char_device(), disk.is_block_device()) == (True, True)
    assert [os.major(path.stat().st_rdev) for path in (null, disk, large)] == [1, 7, 300]
    assert [os.minor(path.stat().st_rdev) for path in (null, disk, large)] == [3, 200, 70_000]
    null.write_bytes(b"into the void")
    assert null.read_bytes() == b""


def plain_files_by_mknod(place: Path) -> None:
    os.mknod(place / "file", stat.S_IFREG | 0o604)
    assert (place / "file").is_file()
    (place / "file").write_bytes(b"content")
    assert (place / "file").read_bytes() == b"content"
