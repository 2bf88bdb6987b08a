"""System calls that Python lacks, and small words for what tests of a file system say again and again."""

import ctypes
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534
AT_FDCWD = -100
NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
KEEP_SIZE, PUNCH_HOLE = 1, 2
SECOND = 1_000_000_000
MILLISECOND = 1_000_000
_CLOCK_REALTIME_COARSE = 5

_libc = ctypes.CDLL(None, use_errno=True)
_libc.opendir.restype = ctypes.c_void_p
_libc.telldir.restype = ctypes.c_long


@contextmanager
def refused(number: int) -> Iterator[None]:
    """Expect an OSError with errno *number*."""
    with pytest.raises(OSError) as caught:  # noqa: PT011 (the number is what it matches by)
        yield
    assert errno.errorcode[caught.value.errno or 0] == errno.errorcode[number]


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def utimensat(path: Path, atime: tuple[int, int], mtime: tuple[int, int]) -> None:
    """:manpage:`utimensat(2)`; each time is (seconds, nanoseconds), the latter maybe UTIME_NOW or UTIME_OMIT."""
    times = (_Timespec * 2)(_Timespec(*atime), _Timespec(*mtime))
    _check(_libc.utimensat(AT_FDCWD, os.fsencode(path), times, 0))


def fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    """:manpage:`fallocate(2)`."""
    _check(_libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)))


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class _Dirent(ctypes.Structure):
    _fields_ = (
        ("ino", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("length", ctypes.c_ushort),
        ("type", ctypes.c_ubyte),
        ("name", ctypes.c_char * 256),
    )


_libc.readdir.restype = ctypes.POINTER(_Dirent)


class Stream:
    """A directory stream (:manpage:`opendir(3)`)."""

    def __init__(self, path: Path) -> None:
        self._stream = ctypes.c_void_p(_libc.opendir(os.fsencode(path)))
        assert self._stream

    def close(self) -> None:
        _libc.closedir(self._stream)

    def read(self) -> bytes | None:
        """Return the next name, or None at the end."""
        entry = _libc.readdir(self._stream)
        name: bytes | None = entry.contents.name if entry else None
        return name

    def rest(self) -> list[bytes]:
        """Return all names from here to the end."""
        return list(iter(self.read, None))

    def tell(self) -> int:
        position: int = _libc.telldir(self._stream)
        return position

    def seek(self, position: int) -> None:
        _libc.seekdir(self._stream, ctypes.c_long(position))

    def rewind(self) -> None:
        _libc.rewinddir(self._stream)


@contextmanager
def streaming(path: Path) -> Iterator[Stream]:
    """Give a directory stream on *path*."""
    stream = Stream(path)
    try:
        yield stream
    finally:
        stream.close()


@contextmanager
def opened(path: Path, flags: int, mode: int = 0o666) -> Iterator[int]:
    """Give a descriptor of *path*."""
    fd = os.open(path, flags, mode)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def unprivileged(uid: int = NOBODY, gid: int = NOBODY) -> Iterator[None]:
    """Be *uid* and *gid* for a while. What is above the test's directory may be closed to them: use ``dir_fd``."""
    groups, own_gid = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(own_gid)
        os.setgroups(groups)


@contextmanager
def masked(umask: int) -> Iterator[None]:
    """Use *umask* for a while."""
    before = os.umask(umask)
    try:
        yield
    finally:
        os.umask(before)


def permissions(path: Path) -> int:
    """Return the twelve mode bits of *path* itself."""
    return stat.S_IMODE(path.lstat().st_mode)


def names(path: Path) -> set[bytes]:
    """Return what is in a directory."""
    return set(os.listdir(os.fsencode(path)))


def let_tick() -> int:
    """Return a time (ns) such that every change up to here was stamped no later, and every one from here on is later.

    File systems may take their times from the kernel's coarse clock, which moves once a jiffy.
    """
    passed = time.time_ns()
    while time.clock_gettime_ns(_CLOCK_REALTIME_COARSE) <= passed:
        time.sleep(0.001)  # between looks at the clock that is waited for
    return passed


Behaviour = Callable[[Path], None]
"""Shows one behaviour in an empty directory of its own, failing where it is not so."""
