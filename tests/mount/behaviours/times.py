"""Times: kept to the nanosecond, and changed by exactly the operations that POSIX names."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.files import SECOND, opened, wait_for_clock_tick
from tests.support.syscalls import UTIME_NOW, UTIME_OMIT, utimensat

_CLOCK_STEP = SECOND // 50
"""The clock of a file system may advance once per jiffy only, which is at most 10 ms."""


def times_to_the_nanosecond(workdir: Path) -> None:
    (workdir / "link").symlink_to("x")
    os.mkfifo(workdir / "fifo")
    (workdir / "file").touch()
    for atime, mtime in (
        (1, 2),
        (1_700_000_000_123_456_789, 999_999_999),
        (0, 0),
        (2**32 * SECOND + 7, 2**33 * SECOND),
    ):
        for path in (workdir, workdir / "file", workdir / "link", workdir / "fifo"):
            os.utime(path, ns=(atime, mtime), follow_symlinks=False)
            info = path.lstat()
            assert (info.st_atime_ns, info.st_mtime_ns) == (atime, mtime)


def times_before_the_epoch(workdir: Path) -> None:
    file = workdir / "file"
    file.touch()
    for atime, mtime in ((-1, -SECOND), (-2 * SECOND + 1, -10 * 365 * 86_400 * SECOND + 123_456_789)):
        os.utime(file, ns=(atime, mtime))
        assert (file.stat().st_atime_ns, file.stat().st_mtime_ns) == (atime, mtime)


def utime_now_and_omit(workdir: Path) -> None:
    file = workdir / "file"
    file.touch()
    os.utime(file, ns=(1, 2))
    utimensat(file, (0, UTIME_OMIT), (7, 8))
    assert (file.stat().st_atime_ns, file.stat().st_mtime_ns) == (1, 7 * SECOND + 8)
    utimensat(file, (9, 10), (0, UTIME_OMIT))
    assert (file.stat().st_atime_ns, file.stat().st_mtime_ns) == (9 * SECOND + 10, 7 * SECOND + 8)
    began = wait_for_clock_tick()
    utimensat(file, (0, UTIME_NOW), (0, UTIME_OMIT))
    assert file.stat().st_atime_ns > began
    assert file.stat().st_mtime_ns == 7 * SECOND + 8
    utimensat(file, (0, UTIME_OMIT), (0, UTIME_NOW))
    assert file.stat().st_mtime_ns > began
    wait_for_clock_tick()
    before = file.stat()
    utimensat(file, (0, UTIME_OMIT), (0, UTIME_OMIT))
    assert file.stat() == before


def a_new_file_has_one_time(workdir: Path) -> None:
    makers: tuple[Callable[[Path], object], ...] = (
        Path.touch,
        Path.mkdir,
        os.mkfifo,
        lambda path: path.symlink_to("x"),
    )
    for number, make in enumerate(makers):
        began = wait_for_clock_tick()
        path = workdir / f"{number}"
        make(path)
        info = path.lstat()
        assert info.st_mtime_ns == info.st_ctime_ns
        assert info.st_ctime_ns > began
        assert abs(info.st_atime_ns - info.st_mtime_ns) < _CLOCK_STEP


_Times = tuple[bool, bool]
"""Whether the modification time and the change time have changed."""

NEITHER, CHANGE, BOTH = (False, False), (False, True), (True, True)


def _changed_times(path: Path, operation: Callable[[], object], *others: Path) -> tuple[_Times, ...]:
    """Return which times of *path* and *others* change during *operation*."""
    wait_for_clock_tick()
    infos = [watched.lstat() for watched in (path, *others)]
    operation()
    found = []
    for watched, before in zip((path, *others), infos, strict=True):
        after = watched.lstat()
        found.append((after.st_mtime_ns != before.st_mtime_ns, after.st_ctime_ns != before.st_ctime_ns))
        assert after.st_ctime_ns >= before.st_ctime_ns
    return tuple(found)


def times_of_a_file(workdir: Path) -> None:
    file, other = workdir / "file", workdir / "other"
    file.write_bytes(b"content")

    def rewrite() -> None:
        with opened(file, os.O_WRONLY) as fd:
            os.write(fd, b"c")

    def read() -> None:
        file.read_bytes()
        os.access(file, os.R_OK)

    for operation, expected in (
        (read, NEITHER),
        (rewrite, BOTH),
        (lambda: os.truncate(file, 3), BOTH),
        (lambda: os.truncate(file, 3), BOTH),
        (lambda: os.truncate(file, 30), BOTH),
        (lambda: file.open("w").close(), BOTH),
        (lambda: file.chmod(0o600), CHANGE),
        (lambda: os.chown(file, 1, 1), CHANGE),
        (lambda: os.utime(file, ns=(1, 1)), BOTH),
        (lambda: os.utime(file, ns=(5, 1)), CHANGE),
        (lambda: os.link(file, other), CHANGE),
        (other.unlink, CHANGE),
    ):
        assert _changed_times(file, operation) == (expected,)


def times_of_a_parent(workdir: Path) -> None:
    parent, elsewhere, file = workdir / "parent", workdir / "elsewhere", workdir / "parent" / "file"
    for directory in (parent, elsewhere):
        directory.mkdir()
    for operation, expected in (
        (file.touch, BOTH),
        (lambda: file.write_bytes(b"content"), NEITHER),
        (lambda: file.chmod(0o600), NEITHER),
        (lambda: os.listdir(parent), NEITHER),
        (lambda: os.link(file, parent / "link"), BOTH),
        ((parent / "link").unlink, BOTH),
        ((parent / "sub").mkdir, BOTH),
        ((parent / "sub" / "inner").touch, NEITHER),
        ((parent / "sub" / "inner").unlink, NEITHER),
        ((parent / "sub").rmdir, BOTH),
        (lambda: (parent / "symlink").symlink_to("x"), BOTH),
        (lambda: os.mkfifo(parent / "fifo"), BOTH),
        (lambda: file.rename(parent / "renamed"), BOTH),
        (lambda: (parent / "renamed").rename(file), BOTH),
        (lambda: file.rename(elsewhere / "file"), BOTH),
        (lambda: (elsewhere / "file").rename(file), BOTH),
        (lambda: parent.chmod(0o711), CHANGE),
    ):
        assert _changed_times(parent, operation) == (expected,)
    assert _changed_times(parent, lambda: file.rename(elsewhere / "file"), elsewhere) == (BOTH, BOTH)


def a_failed_operation_changes_no_times(workdir: Path) -> None:
    file, directory = workdir / "file", workdir / "directory"
    file.touch()
    (directory / "inner").mkdir(parents=True)

    def all_fail() -> None:
        for call in (file.mkdir, directory.rmdir, directory.unlink, (workdir / "missing").unlink):
            with pytest.raises(OSError, match=str(workdir)):
                call()
        with pytest.raises(OSError, match=str(workdir)):
            file.rename(directory)

    assert _changed_times(file, all_fail, workdir, directory) == (NEITHER, NEITHER, NEITHER)


def an_empty_write_changes_no_times(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(b"content")
    with opened(file, os.O_WRONLY) as fd:
        assert _changed_times(file, lambda: os.write(fd, b"")) == (NEITHER,)


def a_rename_keeps_atime_and_mtime(workdir: Path) -> None:
    file, directory = workdir / "file", workdir / "directory"
    file.touch()
    directory.mkdir()
    for path in (file, directory):
        os.utime(path, ns=(11, 12))
        path.rename(workdir / "moved")
        assert ((workdir / "moved").stat().st_atime_ns, (workdir / "moved").stat().st_mtime_ns) == (11, 12)
        (workdir / "moved").rename(path)


def each_write_changes_the_times_of_an_open_file(workdir: Path) -> None:
    file = workdir / "file"
    with opened(file, os.O_RDWR | os.O_CREAT) as fd:
        for _ in range(3):
            before = os.fstat(fd)
            wait_for_clock_tick()
            os.write(fd, b"x")
            after = os.fstat(fd)
            assert after.st_mtime_ns > before.st_mtime_ns
            assert after.st_mtime_ns == after.st_ctime_ns == file.stat().st_mtime_ns
