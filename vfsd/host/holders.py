"""Who keeps a mount busy: processes that use it, and mounts below it.

It reads only /proc, and asks no file system: a mount may be frozen or dead.
"""

import os
from pathlib import Path
from typing import NamedTuple

from vfsd.host.mount_table import is_below, mounts, unescaped
from vfsd.host.processes import PROC, link_target, mapped_files, open_files, process_name, processes


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
        *filter(None, (_holder(pid, path, callers) for pid in processes())),
        *([Holder("this command, which has a file of it open (its output?)", caller=False)] if _has_open(path) else []),
    ]


def _has_open(path: str) -> bool:
    """Whether this process has a file open below *path*, or runs from there."""
    return any(is_below(target, path) for target in _references(PROC / "self"))


def _holder(pid: int, path: str, callers: set[int]) -> Holder | None:
    """Return process *pid* as a holder of *path*, or None if it does not use *path*."""
    here = is_below(link_target(PROC / str(pid) / "cwd"), path)
    if here and pid in callers:
        return Holder(f"the current directory of {process_name(pid)}, which called this command", caller=True)
    if here or any(is_below(target, path) for target in _references(PROC / str(pid))):
        return Holder(process_name(pid), caller=False)
    return None


def _callers() -> set[int]:
    """Return the processes above this one: the shell that it was called from, and what called that."""
    found: set[int] = set()
    pid = os.getppid()
    while pid and pid not in found:
        found.add(pid)
        try:
            pid = int((PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:  # it has just ended
            break
    return found


def _references(process: Path) -> list[str]:
    """Return the paths that *process* uses: root, program, open files, mapped files."""
    links = [process / "root", process / "exe", *open_files(process)]
    mapped = [os.fsdecode(unescaped(fields[-1].lstrip(b" "))) for fields in mapped_files(process)]
    return mapped + [target for target in map(link_target, links) if target]
