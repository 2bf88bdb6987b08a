"""The mount table of the kernel (:manpage:`proc_pid_mountinfo(5)`), of this process or of another.

A path may have any bytes except NUL. So the table is read as bytes, split at newlines alone, and a path becomes text by
:func:`os.fsdecode`, which keeps every byte.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

from vfsd.errors import NotMounted

FSTYPE = "fuse.vfsd"
_SOURCE_PREFIX = "vfsd:"
_USER = re.compile(rb"(?:^|,)user_id=([0-9]+)")


class Mount(NamedTuple):
    """A line of the mount table. *device* is ``major:minor``. *user* is the uid that mounted it, if it is a FUSE.

    *root* is what of the file system is mounted there: a directory, or the name of a namespace (``mnt:[4026532178]``).
    """

    mountpoint: str
    fstype: str
    source: str
    device: str
    user: int | None
    root: str

    @property
    def scope(self) -> str | None:
        """The scope, or None if this is not a vfsd mount."""
        return self.source.removeprefix(_SOURCE_PREFIX) if self.fstype == FSTYPE else None


def mounts(process: int | str = "self") -> list[Mount]:
    """Return the mount table that *process* sees, the latest mount last. Raises OSError if it cannot be read."""
    lines = Path(f"/proc/{process}/mountinfo").read_bytes().split(b"\n")
    return [_parsed(line) for line in lines if line]


def _parsed(line: bytes) -> Mount:
    before, _, after = line.partition(b" - ")
    fields, (fstype, source, options, *_) = before.split(b" "), after.split(b" ")
    user = _USER.search(options)
    mounted_by = int(user[1]) if user else None
    return Mount(_text(fields[4]), _text(fstype), _text(source), _text(fields[2]), mounted_by, _text(fields[3]))


def _text(raw: bytes) -> str:
    """Return *raw* as text, without the octal escapes that the table has for space, tab, newline and backslash."""
    return os.fsdecode(unescaped(raw))


def unescaped(raw: bytes) -> bytes:
    """Return *raw* with each octal escape of procfs (backslash, 012) replaced by its byte."""
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8) & 0xFF]), raw)


def mount_at(path: str) -> Mount | None:
    """Return the topmost mount at *path* (absolute), or None."""
    return next((mount for mount in reversed(mounts()) if mount.mountpoint == path), None)


def own_mount_at(path: str) -> Mount:
    """Return the vfsd mount at *path* (absolute). Raises NotMounted, which names the vfsd mount that has *path*."""
    mount = mount_at(path)
    if mount is not None and mount.scope is not None:
        return mount
    other = f", but {mount.fstype}" if mount else ""
    above = [found.mountpoint for found in mounts() if found.scope is not None and is_below(path, found.mountpoint)]
    hint = f"; it lies in the mount at {max(above, key=len)}: name that" if above else "; vfsd status lists the mounts"
    raise NotMounted(f"{path}: no vfsd mount there{other}{hint}")


def is_below(path: str, top: str) -> bool:
    """Return whether *path* is *top* or lies below it, judged by the text alone."""
    return path == top or path.startswith(top.rstrip("/") + "/")
