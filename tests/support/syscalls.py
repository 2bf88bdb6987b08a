"""System calls that Python does not offer, or not in the shape tests want."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_AT_FDCWD = -100
_libc = ctypes.CDLL(None, use_errno=True)


def renameat2(old: bytes | Path, new: bytes | Path, flags: int) -> None:
    """Rename with *flags* (:manpage:`renameat2(2)`). Raises OSError."""
    if _libc.renameat2(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), ctypes.c_uint(flags)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fspath(old), None, os.fspath(new))


@contextmanager
def closing_fd(fd: int) -> Iterator[int]:
    """Close *fd* at the end of the block. An error that closing it meets is raised, as any other."""
    try:
        yield fd
    finally:
        os.close(fd)
