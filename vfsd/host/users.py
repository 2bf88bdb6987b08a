"""Which processes use a file system by an open file or a directory, also after its mount has been removed.

A path does not tell that any more, so the number of the file system does.
"""

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vfsd.host.processes import PROC, mapped_files, open_files, process_name, processes

_LIBC = ctypes.CDLL(None)
_AT_FDCWD = -100
_AT_STATX_DONT_SYNC = 0x4000
_STATX_BYTES = 256
_STATX_DEVICE = struct.Struct("136x2I")
"""stx_dev_major and stx_dev_minor in the answer of :manpage:`statx(2)`."""


class User(NamedTuple):
    """A process that uses a file system. *how* is a clause for people."""

    pid: int
    how: str
    certain: bool = True

    def describe(self) -> str:
        """Return one phrase for people."""
        return f"{process_name(self.pid)}, {self.how}"

    def remedy(self) -> str:
        """Return "": no command ends the use of a file, but the end of the process."""
        return ""


def users(device: str) -> Iterator[User]:
    """Yield the processes that use the file system *device* (``major:minor``), as far as this user may see them."""
    for pid in processes():
        process = PROC / str(pid)
        files = (*open_files(process), process / "exe")
        if any(_device_of(link) == device for link in files) or _maps(process, device):
            yield User(pid, "which has a file of it open")
        elif any(_device_of(process / name) == device for name in ("cwd", "root")):
            yield User(pid, "whose current directory is in it")


def _maps(process: Path, device: str) -> bool:
    numbers = (fields[3].split(b":") for fields in mapped_files(process))
    return any(f"{int(major, 16)}:{int(minor, 16)}" == device for major, minor in numbers)


def _device_of(link: Path) -> str:
    """Return the file system of the file that *link* (of /proc) leads to, or "".

    Nothing but that is asked for, and no file system has to be in step: so FUSE answers without its daemon, which may
    be frozen, and also to root, whom the mount of another user refuses.
    """
    answer = ctypes.create_string_buffer(_STATX_BYTES)
    if _LIBC.statx(_AT_FDCWD, os.fsencode(link), _AT_STATX_DONT_SYNC, 0, answer):
        return ""
    major, minor = _STATX_DEVICE.unpack_from(answer.raw)
    return f"{major}:{minor}"
