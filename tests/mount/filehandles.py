"""File handles (:manpage:`open_by_handle_at(2)`): what an NFS server keeps of a file instead of its name."""

import ctypes
import os
from pathlib import Path

_AT_FDCWD = -100
_MAX_HANDLE_SZ = 128
_libc = ctypes.CDLL(None, use_errno=True)


class _Handle(ctypes.Structure):
    _fields_ = (
        ("handle_bytes", ctypes.c_uint),
        ("handle_type", ctypes.c_int),
        ("f_handle", ctypes.c_ubyte * _MAX_HANDLE_SZ),
    )


def file_handle(path: Path) -> bytes:
    """Return the handle of *path*, for :func:`open_by_handle`."""
    handle, mount_id = _Handle(handle_bytes=_MAX_HANDLE_SZ), ctypes.c_int()
    _check(_libc.name_to_handle_at(_AT_FDCWD, os.fsencode(path), ctypes.byref(handle), ctypes.byref(mount_id), 0))
    return bytes(handle)


def open_by_handle(mount_fd: int, handle: bytes) -> int:
    """Open for reading what *handle* means on the file system that *mount_fd* is on, and return the descriptor."""
    return _check(_libc.open_by_handle_at(mount_fd, ctypes.byref(_Handle.from_buffer_copy(handle)), os.O_RDONLY))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
