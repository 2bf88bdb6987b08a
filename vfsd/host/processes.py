"""The processes of this host, as /proc shows them. What the kernel says is bytes: a command's name may have any."""

import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
_MAPS_FIELDS = 6


def processes() -> Iterator[int]:
    """Yield all processes that /proc shows, except this one."""
    pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
    return (pid for pid in pids if pid != os.getpid())


def process_name(pid: int) -> str:
    """Return process *pid* for people, as ``command (pid)``."""
    try:
        command = os.fsdecode((PROC / str(pid) / "comm").read_bytes().removesuffix(b"\n"))
    except OSError:
        command = "?"
    return f"{command} ({pid})"


def open_files(process: Path) -> list[Path]:
    """Return the links to the files that *process* (a directory of /proc) has open. None if that is not to be seen."""
    try:
        return list((process / "fd").iterdir())
    except OSError:  # it has just ended, or belongs to another user
        return []


def mapped_files(process: Path) -> list[list[bytes]]:
    """Return the fields of each mapping with a file (:manpage:`proc_pid_maps(5)`); the last is its path."""
    try:
        lines = (process / "maps").read_bytes().split(b"\n")
    except OSError:
        return []
    return [fields for line in lines if len(fields := line.split(b" ", _MAPS_FIELDS - 1)) == _MAPS_FIELDS]


def link_target(link: Path) -> str:
    """Return the target of *link*, or "" if it cannot be read."""
    try:
        return os.fspath(link.readlink())
    except OSError:
        return ""
