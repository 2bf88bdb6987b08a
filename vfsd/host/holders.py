"""Who keeps a mount busy: processes that use it, mounts below it, and other mount namespaces that have it mounted.

It reads only /proc, and asks no file system: a mount may be frozen or dead. What the kernel says is bytes: a command's
name and a path may have any.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vfsd.host.mount_table import is_below, mounts, unescaped
from vfsd.shell import quoted

_PROC = Path("/proc")
_MAPS_FIELDS = 6


class Holder(NamedTuple):
    """What keeps a mount busy. *caller*: the current directory of a program that has called this one, as a shell."""

    name: str
    caller: bool


def holders(path: str) -> list[Holder]:
    """Return what keeps the mount at *path* busy: mounts below it, and processes.

    This process counts if it has a file open there, but not by its current directory.
    """
    below = [mount.mountpoint for mount in mounts() if mount.mountpoint.startswith(f"{path}/")]
    callers = _callers()
    return [
        *(Holder(f"the mount at {mountpoint}", caller=False) for mountpoint in below),
        *filter(None, (_holder(pid, path, callers) for pid in _processes())),
        *([Holder("this command, which has a file of it open (its output?)", caller=False)] if _has_open(path) else []),
    ]


def _has_open(path: str) -> bool:
    """Whether this process has a file open below *path*, or runs from there."""
    return any(is_below(target, path) for target in _references(_PROC / "self"))


def _holder(pid: int, path: str, callers: set[int]) -> Holder | None:
    """Return process *pid* as a holder of *path*, or None if it does not use *path*."""
    here = is_below(_link_target(_PROC / str(pid) / "cwd"), path)
    if here and pid in callers:
        return Holder(f"the current directory of {process_name(pid)}, which called this command", caller=True)
    if here or any(is_below(target, path) for target in _references(_PROC / str(pid))):
        return Holder(process_name(pid), caller=False)
    return None


def _processes() -> Iterator[int]:
    """Yield all processes that /proc shows, except this one."""
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    return (pid for pid in pids if pid != os.getpid())


def _callers() -> set[int]:
    """Return the processes above this one: the shell that it was called from, and what called that."""
    found: set[int] = set()
    pid = os.getppid()
    while pid and pid not in found:
        found.add(pid)
        try:
            pid = int((_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:  # it has just ended
            break
    return found


def process_name(pid: int) -> str:
    """Return process *pid* for people, as ``command (pid)``."""
    try:
        command = os.fsdecode((_PROC / str(pid) / "comm").read_bytes().removesuffix(b"\n"))
    except OSError:
        command = "?"
    return f"{command} ({pid})"


def _references(process: Path) -> list[str]:
    """Return the paths that *process* uses: root, program, open files, mapped files."""
    links = [process / "root", process / "exe"]
    paths = []
    try:
        links += list((process / "fd").iterdir())
        maps = [line.split(b" ", _MAPS_FIELDS - 1) for line in (process / "maps").read_bytes().split(b"\n")]
        paths += [os.fsdecode(unescaped(fields[-1].lstrip(b" "))) for fields in maps if len(fields) == _MAPS_FIELDS]
    except OSError:  # it has just ended, or belongs to another user
        pass
    return paths + [target for target in map(_link_target, links) if target]


def _link_target(link: Path) -> str:
    """Return the target of *link*, or "" if it cannot be read."""
    try:
        return os.fspath(link.readlink())
    except OSError:
        return ""


class HeldElsewhere(NamedTuple):
    """A mount in another mount namespace, and one process that lives there."""

    pid: int
    mountpoint: str

    def describe(self) -> str:
        """Return one phrase for people."""
        return f"{process_name(self.pid)} at {self.mountpoint} in another mount namespace"

    def remedy(self) -> str:
        """Return the command that unmounts it there."""
        return f"nsenter --target {self.pid} --mount umount {quoted(self.mountpoint)}"


def held_elsewhere(device: str) -> list[HeldElsewhere]:
    """Return where other mount namespaces have the file system *device* mounted, with one process for each namespace.

    A namespace whose processes belong to other users is left out, unless this process is root's.
    """
    known, found = {_namespace("self")}, []
    for pid in _processes():
        namespace = _namespace(pid)
        if not namespace or namespace in known:
            continue
        try:
            there = [mount.mountpoint for mount in mounts(pid) if mount.device == device]
        except OSError:  # it has just ended: another process of its namespace may still live
            continue
        known.add(namespace)
        found += [HeldElsewhere(pid, mountpoint) for mountpoint in there[:1]]
    return found


def _namespace(process: int | str) -> str:
    return _link_target(_PROC / str(process) / "ns" / "mnt")
