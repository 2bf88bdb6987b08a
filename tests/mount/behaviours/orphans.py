"""Open files and directories stay usable after their names are removed or renamed."""

import os
import stat
from errno import ENOENT, ENOTEMPTY
from pathlib import Path

from tests.support.files import opened, refused


def append_write(workdir: Path) -> None:
    with opened(workdir / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND) as fd:
        os.write(fd, b"one\n")
        os.write(fd, b"two\n")
    with opened(workdir / "log", os.O_WRONLY | os.O_APPEND) as fd:
        assert os.lseek(fd, 0, os.SEEK_CUR) == 0
        os.write(fd, b"three\n")
        assert os.lseek(fd, 0, os.SEEK_CUR) == 14
    assert (workdir / "log").read_bytes() == b"one\ntwo\nthree\n"


def fstat_deleted(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(b"content")
    file.chmod(0o640)
    before = file.stat()
    with opened(file, os.O_RDWR) as fd:
        file.unlink()
        after = os.fstat(fd)
        assert (after.st_ino, after.st_mode, after.st_size) == (before.st_ino, before.st_mode, 7)
        os.fchmod(fd, 0o600)
        os.ftruncate(fd, 3)
        os.utime(fd, ns=(1, 2))
        changed = os.fstat(fd)
        assert (stat.S_IMODE(changed.st_mode), changed.st_size, changed.st_mtime_ns) == (0o600, 3, 2)


def nlink_zero(workdir: Path) -> None:
    file, other = workdir / "file", workdir / "other"
    file.touch()
    os.link(file, other)
    with opened(file, os.O_RDONLY) as fd:
        file.unlink()
        assert os.fstat(fd).st_nlink == 1
        other.unlink()
        assert os.fstat(fd).st_nlink == 0


def unlink_while_open(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(b"a" * 10_000)
    with opened(file, os.O_RDWR) as fd:
        file.unlink()
        assert not file.exists()
        assert os.pread(fd, 20_000, 0) == b"a" * 10_000
        os.pwrite(fd, b"b" * 5_000, 9_000)
        assert os.pread(fd, 20_000, 0) == b"a" * 9_000 + b"b" * 5_000
        file.write_bytes(b"another file by that name")
        assert os.fstat(fd).st_size == 14_000
        assert file.stat().st_ino != os.fstat(fd).st_ino
    assert file.read_bytes() == b"another file by that name"


def rename_over_an_open_file(workdir: Path) -> None:
    old, new = workdir / "old", workdir / "new"
    old.write_bytes(b"old")
    new.write_bytes(b"new")
    with opened(old, os.O_RDONLY) as fd:
        new.rename(old)
        assert os.pread(fd, 10, 0) == b"old"
        assert os.fstat(fd).st_nlink == 0
    assert old.read_bytes() == b"new"
    assert not new.exists()


def rename_of_an_open_file(workdir: Path) -> None:
    file, other = workdir / "file", workdir / "other"
    with opened(file, os.O_RDWR | os.O_CREAT) as fd:
        file.rename(other)
        os.write(fd, b"written under the new name")
        assert os.fstat(fd).st_nlink == 1
    assert other.read_bytes() == b"written under the new name"


def rename_of_an_open_directory(workdir: Path) -> None:
    old, new = workdir / "old", workdir / "new"
    old.mkdir()
    (old / "inner").touch()
    with opened(old, os.O_RDONLY | os.O_DIRECTORY) as fd:
        old.rename(new)
        with os.scandir(fd) as entries:
            assert [entry.name for entry in entries] == ["inner"]
        os.close(os.open("made", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        os.rename("made", "moved", src_dir_fd=fd, dst_dir_fd=fd)
    assert sorted(path.name for path in new.iterdir()) == ["inner", "moved"]
    assert not old.exists()


def rename_over_an_open_directory(workdir: Path) -> None:
    old, new = workdir / "old", workdir / "new"
    old.mkdir()
    new.mkdir()
    (new / "inner").touch()
    with opened(old, os.O_RDONLY | os.O_DIRECTORY) as fd:
        new.rename(old)
        assert os.fstat(fd).st_nlink == 0
        assert os.listdir(fd) == []
        with refused(ENOENT):
            os.open("late", os.O_CREAT | os.O_WRONLY, dir_fd=fd)
    assert (old / "inner").exists()


def link_unlink_rename(workdir: Path) -> None:
    """Write a new file, link the old one to a backup, rename over it, unlink the backup: as editors do."""
    file, backup, draft = workdir / "file", workdir / "backup", workdir / "draft"
    file.write_bytes(b"old")
    for number in range(20):
        draft.write_bytes(b"new %d" % number)
        os.link(file, backup)
        draft.rename(file)
        assert (file.stat().st_nlink, backup.stat().st_nlink) == (1, 1)
        backup.unlink()
        assert file.read_bytes() == b"new %d" % number
    assert os.listdir(workdir) == ["file"]


def directory_removed_while_open(workdir: Path) -> None:
    gone = workdir / "gone"
    gone.mkdir()
    with opened(gone, os.O_RDONLY | os.O_DIRECTORY) as fd:
        gone.rmdir()
        assert os.fstat(fd).st_nlink == 0
        assert os.listdir(fd) == []
        with refused(ENOENT):
            os.mkdir("sub", dir_fd=fd)
        with refused(ENOENT):
            os.symlink("x", "link", dir_fd=fd)
        with refused(ENOENT):
            os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd)
        with refused(ENOENT):
            os.stat("file", dir_fd=fd)
    assert list(workdir.iterdir()) == []


def working_directory_removed(workdir: Path) -> None:
    gone, before = workdir / "gone", Path.cwd()
    gone.mkdir()
    os.chdir(gone)
    try:
        gone.rmdir()
        assert os.listdir(".") == []
        with refused(ENOENT):
            Path("file").touch()
        with refused(ENOENT):
            Path.cwd()
        assert Path("..", "gone").exists() is False
        assert os.stat(".").st_nlink == 0
    finally:
        os.chdir(before)


def an_open_file_does_not_keep_its_directory(workdir: Path) -> None:
    directory = workdir / "dir"
    directory.mkdir()
    file = directory / "file"
    with opened(file, os.O_RDWR | os.O_CREAT) as fd:
        with refused(ENOTEMPTY):
            directory.rmdir()
        file.unlink()
        directory.rmdir()
        os.write(fd, b"still")
        assert os.pread(fd, 10, 0) == b"still"


def link_from_an_open_file_without_a_name(workdir: Path) -> None:
    """Through /proc an open file can get another name, but only while it has one (linkat(2), ENOENT)."""
    file, other = workdir / "file", workdir / "other"
    file.write_bytes(b"content")
    with opened(workdir, os.O_RDONLY) as here, opened(file, os.O_RDONLY) as fd:

        def link() -> None:  # with a directory descriptor Python calls linkat(2), which can follow the link
            os.link(f"/proc/self/fd/{fd}", "other", src_dir_fd=here, dst_dir_fd=here, follow_symlinks=True)

        link()
        assert os.fstat(fd).st_nlink == 2
        file.unlink()
        other.unlink()
        with refused(ENOENT):
            link()
