"""Times: kept to the nanosecond, and moved by exactly those operations that POSIX says."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mount.calls import SECOND, UTIME_NOW, UTIME_OMIT, let_tick, opened, utimensat

_GRAIN = SECOND // 50
"""A file system's clock may stand still for a jiffy, 10 ms at the most."""


def times_to_the_nanosecond(place: Path) -> None:
    (place / "link").symlink_to("x")
    os.mkfifo(place / "fifo")
    (place / "file").touch()
    for atime, mtime in (
        (1, 2),
        (1_700_000_000_123_456_789, 999_999_999),
        (0, 0),
        (2**32 * SECOND + 7, 2**33 * SECOND),
    ):
        for path in (place, place / "file", place / "link", place / "fifo"):
            os.utime(path, ns=(atime, mtime), follow_symlinks=False)
            info = path.lstat()
            assert (info.st_atime_ns, info.st_mtime_ns) == (atime, mtime)


def times_before_the_epoch(place: Path) -> None:
    file = place / "file"
    file.touch()
    for atime, mtime in ((-1, -SECOND), (-2 * SECOND + 1, -10 * 365 * 86_400 * SECOND + 123_456_789)):
        os.utime(file, ns=(atime, mtime))
        assert (file.stat().st_atime_ns, file.stat().st_mtime_ns) == (atime, mtime)


def utime_now_and_omit(place: Path) -> None:
    file = place / "file"
    file.touch()
    os.utime(file, ns=(1, 2))
    utimensat(file, (0, UTIME_OMIT), (7, 8))
    assert (file.stat().st_atime_ns, file.stat().st_mtime_ns) == (1, 7 * SECOND + 8)
    utimensat(file, (9, 10), (0, UTIME_OMIT))
    assert (file.stat().st_atime_ns, file.stat().st_mtime_ns) == (9 * SECOND + 10, 7 * SECOND + 8)
    began = let_tick()
    utimensat(file, (0, UTIME_NOW), (0, UTIME_OMIT))
    assert file.stat().st_atime_ns > began
    assert file.stat().st_mtime_ns == 7 * SECOND + 8
    utimensat(file, (0, UTIME_OMIT), (0, UTIME_NOW))
    assert file.stat().st_mtime_ns > began
    let_tick()
    before = file.stat()
    utimensat(file, (0, UTIME_OMIT), (0, UTIME_OMIT))
    assert file.stat() == before


def a_new_file_has_one_time(place: Path) -> None:
    makers: tuple[Callable[[Path], object], ...] = (
        Path.touch,
        Path.mkdir,
        os.mkfifo,
        lambda path: path.symlink_to("x"),
    )
    for number, make in enumerate(makers):
        began = let_tick()
        path = place / f"{number}"
        make(path)
        info = path.lstat()
        assert info.st_mtime_ns == info.st_ctime_ns
        assert info.st_ctime_ns > began
        assert abs(info.st_atime_ns - info.st_mtime_ns) < _GRAIN


_Times = tuple[bool, bool]
"""Whether the modification time and the change time have moved."""

NOTHING, CHANGE, BOTH = (False, False), (False, True), (True, True)


def _moved(path: Path, operation: Callable[[], object], *others: Path) -> tuple[_Times, ...]:
    """Return which times of *path* and *others* have moved by *operation*."""
    let_tick()
    infos = [watched.lstat() for watched in (path, *others)]
    operation()
    found = []
    for watched, before in zip((path, *others), infos, strict=True):
        after = watched.lstat()
        found.append((after.st_mtime_ns != before.st_mtime_ns, after.st_ctime_ns != before.st_ctime_ns))
        assert after.st_ctime_ns >= before.st_ctime_ns
    return tuple(found)


def times_of_a_file(place: Path) -> None:
    file, other = place / "file", place / "other"
    file.write_bytes(b"content")

    def rewrite() -> None:
        with opened(file, os.O_WRONLY) as fd:
            os.write(fd, b"c")

    def read() -> None:
        file.read_bytes()
        os.access(file, os.R_OK)

    for operation, expected in (
        (read, NOTHING),
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
        assert _moved(file, operation) == (expected,)


def times_of_a_parent(place: Path) -> None:
    parent, elsewhere, file = place / "parent", place / "elsewhere", place / "parent" / "file"
    for directory in (parent, elsewhere):
        directory.mkdir()
    for operation, expected in (
        (file.touch, BOTH),
        (lambda: file.write_bytes(b"content"), NOTHING),
        (lambda: file.chmod(0o600), NOTHING),
        (lambda: os.listdir(parent), NOTHING),
        (lambda: os.link(file, parent / "link"), BOTH),
        ((parent / "link").unlink, BOTH),
        ((parent / "sub").mkdir, BOTH),
        ((parent / "sub" / "inner").touch, NOTHING),
        ((parent / "sub" / "inner").unlink, NOTHING),
        ((parent / "sub").rmdir, BOTH),
        (lambda: (parent / "symlink").symlink_to("x"), BOTH),
        (lambda: os.mkfifo(parent / "fifo"), BOTH),
        (lambda: file.rename(parent / "renamed"), BOTH),
        (lambda: (parent / "renamed").rename(file), BOTH),
        (lambda: file.rename(elsewhere / "file"), BOTH),
        (lambda: (elsewhere / "file").rename(file), BOTH),
        (lambda: parent.chmod(0o711), CHANGE),
    ):
        assert _moved(parent, operation) == (expected,)
    assert _moved(parent, lambda: file.rename(elsewhere / "file"), elsewhere) == (BOTH, BOTH)


def a_refused_operation_moves_no_times(place: Path) -> None:
    file, directory = place / "file", place / "directory"
    file.touch()
    (directory / "inner").mkdir(parents=True)

    def all_refused() -> None:
        for call in (file.mkdir, directory.rmdir, directory.unlink, (place / "missing").unlink):
            with pytest.raises(OSError, match=str(place)):
                call()
        with pytest.raises(OSError, match=str(place)):
            file.rename(directory)

    assert _moved(file, all_refused, place, directory) == (NOTHING, NOTHING, NOTHING)


def an_empty_write_moves_no_times(place: Path) -> None:
    file = place / "file"
    file.write_bytes(b"content")
    with opened(file, os.O_WRONLY) as fd:
        assert _moved(file, lambda: os.write(fd, b"")) == (NOTHING,)


def a_rename_keeps_the_times_of_content(place: Path) -> None:
    file, directory = place / "file", place / "directory"
    file.touch()
    directory.mkdir()
    for path in (file, directory):
        os.utime(path, ns=(11, 12))
        path.rename(place / "moved")
        assert ((place / "moved").stat().st_atime_ns, (place / "moved").stat().st_mtime_ns) == (11, 12)
        (place / "moved").rename(path)


def times_of_an_open_file_move_with_each_write(place: Path) -> None:
    file = place / "file"
    with opened(file, os.O_RDWR | os.O_CREAT) as fd:
        for _ in range(3):
            before = os.fstat(fd)
            let_tick()
            os.write(fd, b"x")
            after = os.fstat(fd)
            assert after.st_mtime_ns > before.st_mtime_ns
            assert after.st_mtime_ns == after.st_ctime_ns == file.stat().st_mtime_ns
