"""System calls and C library calls that Python does not offer, or not in the form that tests need."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOREPLACE, EXCHANGE, WHITEOUT = 1, 2, 4
"""Flags of :func:`renameat2`."""
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
"""Values for the nanoseconds of :func:`utimensat`."""
KEEP_SIZE, PUNCH_HOLE = 1, 2
"""Modes of :func:`fallocate`."""

_AT_FDCWD = -100
_MAX_HANDLE_SZ = 128
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> int:
    """Return *result*, or raise the OSError of errno if it is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


@contextmanager
def closing_fd(fd: int) -> Iterator[int]:
    """Close *fd* at the end of the block. An error of close(2) is raised like any other."""
    try:
        yield fd
    finally:
        os.close(fd)


# --- names and attributes


def renameat2(old: bytes | Path, new: bytes | Path, flags: int) -> None:
    """Rename with *flags* (:manpage:`renameat2(2)`). Raises OSError."""
    if _libc.renameat2(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), ctypes.c_uint(flags)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fspath(old), None, os.fspath(new))


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def utimensat(path: Path, atime: tuple[int, int], mtime: tuple[int, int]) -> None:
    """Set the times of *path* (:manpage:`utimensat(2)`). Raises OSError.

    Each time is (seconds, nanoseconds). The nanoseconds may be :data:`UTIME_NOW` or :data:`UTIME_OMIT`.
    """
    times = (_Timespec * 2)(_Timespec(*atime), _Timespec(*mtime))
    _check(_libc.utimensat(_AT_FDCWD, os.fsencode(path), times, 0))


def fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    """Allocate or punch a range of bytes (:manpage:`fallocate(2)`). Raises OSError."""
    _check(_libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)))


# --- file handles: what an NFS server keeps of a file instead of its name


class _Handle(ctypes.Structure):
    _fields_ = (
        ("handle_bytes", ctypes.c_uint),
        ("handle_type", ctypes.c_int),
        ("f_handle", ctypes.c_ubyte * _MAX_HANDLE_SZ),
    )


def name_to_handle(path: Path) -> bytes:
    """Return the file handle of *path* for :func:`open_by_handle` (:manpage:`name_to_handle_at(2)`)."""
    handle, mount_id = _Handle(handle_bytes=_MAX_HANDLE_SZ), ctypes.c_int()
    _check(_libc.name_to_handle_at(_AT_FDCWD, os.fsencode(path), ctypes.byref(handle), ctypes.byref(mount_id), 0))
    return bytes(handle)


def open_by_handle(mount_fd: int, handle: bytes) -> int:
    """Open the file of *handle* for reading, and return the file descriptor (:manpage:`open_by_handle_at(2)`).

    *mount_fd* is any open file of the same file system.
    """
    return _check(_libc.open_by_handle_at(mount_fd, ctypes.byref(_Handle.from_buffer_copy(handle)), os.O_RDONLY))


# --- directory streams


class _Dirent(ctypes.Structure):
    _fields_ = (
        ("ino", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("length", ctypes.c_ushort),
        ("type", ctypes.c_ubyte),
        ("name", ctypes.c_char * 256),
    )


_libc.opendir.restype = ctypes.c_void_p
_libc.telldir.restype = ctypes.c_long
_libc.readdir.restype = ctypes.POINTER(_Dirent)


class DirectoryStream:
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
        """Return all names from the current position to the end."""
        return list(iter(self.read, None))

    def tell(self) -> int:
        position: int = _libc.telldir(self._stream)
        return position

    def seek(self, position: int) -> None:
        _libc.seekdir(self._stream, ctypes.c_long(position))

    def rewind(self) -> None:
        _libc.rewinddir(self._stream)


@contextmanager
def directory_stream(path: Path) -> Iterator[DirectoryStream]:
    """Yield a directory stream on *path*, and close it afterwards."""
    stream = DirectoryStream(path)
    try:
        yield stream
    finally:
        stream.close()
