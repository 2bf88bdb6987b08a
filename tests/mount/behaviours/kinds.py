"""Links, pipes, sockets and devices."""

import os
import socket
import stat
import threading
from errno import EEXIST, EINVAL, ELOOP, ENAMETOOLONG, ENOENT, ENXIO, EPERM
from pathlib import Path

from tests.support.files import opened, permissions, refused, wait_for_clock_tick


def symlinks(workdir: Path) -> None:
    link = workdir / "link"
    link.symlink_to("target")
    info = link.lstat()
    assert stat.S_ISLNK(info.st_mode)
    assert info.st_size == 6
    assert permissions(link) == 0o777
    assert os.readlink(link) == "target"
    (workdir / "target").write_bytes(b"content")
    assert link.read_bytes() == b"content"
    with refused(ELOOP), opened(link, os.O_RDONLY | os.O_NOFOLLOW):
        pass
    with refused(EINVAL):
        os.readlink(workdir / "target")
    with refused(EEXIST):
        link.symlink_to("other")
    link.unlink()
    assert (workdir / "target").exists()


def symlink_targets_of_any_bytes(workdir: Path) -> None:
    longest = "/".join(["t" * 255] * 16)[:4095]
    (workdir / "longest").symlink_to(longest)
    assert os.readlink(workdir / "longest") == longest
    assert (workdir / "longest").lstat().st_size == 4095
    with refused(ENAMETOOLONG):
        os.symlink("t" * 4096, workdir / "too long")
    odd = b"\xff\n //../ \x01"
    os.symlink(odd, os.fsencode(workdir / "odd"))
    assert os.readlink(os.fsencode(workdir / "odd")) == odd


def dangling_and_looping_symlinks(workdir: Path) -> None:
    dangling, first, second = workdir / "dangling", workdir / "first", workdir / "second"
    dangling.symlink_to("missing")
    first.symlink_to("second")
    second.symlink_to("first")
    with refused(ENOENT):
        dangling.stat()
    for path in (first, second, first / "below"):
        with refused(ELOOP):
            path.stat()
    dangling.write_bytes(b"made through the link")
    assert (workdir / "missing").read_bytes() == b"made through the link"
    with refused(EEXIST), opened(dangling, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
        pass


def symlinks_to_directories(workdir: Path) -> None:
    (workdir / "directory").mkdir()
    (workdir / "link").symlink_to("directory")
    (workdir / "link" / "file").touch()
    assert (workdir / "directory" / "file").exists()
    assert (workdir / "link" / "..").stat().st_ino == workdir.stat().st_ino
    (workdir / "absolute").symlink_to(workdir / "directory")
    assert os.listdir(workdir / "absolute") == ["file"]
    os.chown(workdir / "link", 7, 8, follow_symlinks=False)
    assert ((workdir / "link").lstat().st_uid, (workdir / "directory").stat().st_uid) == (7, 0)
    os.utime(workdir / "link", ns=(5, 6), follow_symlinks=False)
    assert (workdir / "link").lstat().st_mtime_ns == 6


def hard_links(workdir: Path) -> None:
    first, second = workdir / "first", workdir / "directory" / "second"
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
        os.link(workdir / "directory", workdir / "directory link")


def hard_links_and_change_times(workdir: Path) -> None:
    first, second = workdir / "first", workdir / "second"
    first.touch()
    made = wait_for_clock_tick()
    before = first.stat()
    os.link(first, second)
    linked = first.stat()
    assert linked.st_ctime_ns > made
    assert linked.st_mtime_ns == before.st_mtime_ns
    made = wait_for_clock_tick()
    second.unlink()
    assert first.stat().st_ctime_ns > made
    assert first.stat().st_mtime_ns == before.st_mtime_ns


def hard_links_to_symlinks_and_pipes(workdir: Path) -> None:
    (workdir / "link").symlink_to("nowhere")
    os.link(workdir / "link", workdir / "link too", follow_symlinks=False)
    assert os.readlink(workdir / "link too") == "nowhere"
    os.mkfifo(workdir / "fifo")
    os.link(workdir / "fifo", workdir / "fifo too")
    assert (workdir / "fifo too").is_fifo()
    assert (workdir / "fifo").stat().st_nlink == (workdir / "link").lstat().st_nlink == 2


def many_hard_links(workdir: Path) -> None:
    first = workdir / "first"
    first.touch()
    for number in range(1000):
        os.link(first, workdir / f"{number}")
    assert first.stat().st_nlink == 1001


def fifos(workdir: Path) -> None:
    fifo = workdir / "fifo"
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


def sockets(workdir: Path) -> None:
    before = Path.cwd()
    os.chdir(workdir)  # the path of a socket is limited to 107 bytes
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
    assert (workdir / "socket").is_socket()
    (workdir / "socket").unlink()


def device_nodes(workdir: Path) -> None:
    null, disk, large = workdir / "null", workdir / "disk", workdir / "large"
    os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(disk, stat.S_IFBLK | 0o600, os.makedev(7, 200))
    os.mknod(large, stat.S_IFCHR | 0o600, os.makedev(300, 70_000))
    assert (null.is_char_device(), disk.is_block_device()) == (True, True)
    assert [os.major(path.stat().st_rdev) for path in (null, disk, large)] == [1, 7, 300]
    assert [os.minor(path.stat().st_rdev) for path in (null, disk, large)] == [3, 200, 70_000]
    null.write_bytes(b"into the void")
    assert null.read_bytes() == b""


def plain_files_by_mknod(workdir: Path) -> None:
    os.mknod(workdir / "file", stat.S_IFREG | 0o604)
    assert (workdir / "file").is_file()
    (workdir / "file").write_bytes(b"content")
    assert (workdir / "file").read_bytes() == b"content"
