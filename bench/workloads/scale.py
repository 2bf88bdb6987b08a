"""Growth: more writers on a server with a delay, more entries in a directory, more files in a scope."""

import os
from functools import partial
from pathlib import Path

from bench.workloads.base import Target, TimedCall, Workload, opened
from bench.workloads.parallel import in_parallel
from bench.workloads.small import LINE, make_empty_files

_FAR = frozenset({"vfsd-redis-far"})
_GROWING = frozenset({"vfsd-redis", "vfsd-redis-tcp", "vfsd-sqlite", "vfsd-memory", "floor", "juicefs", "tmpfs"})
_CREATED = 1000
"""The number of files that a run creates."""


def _log(target: Target, name: int, lines: int) -> None:
    with opened(target.directory / f"log{name}", os.O_CREAT | os.O_APPEND | os.O_WRONLY) as fd:
        for _ in range(lines):
            os.write(fd, LINE)


def _append_by(target: Target, writers: int) -> TimedCall:
    return in_parallel([partial(_log, target, name, max(1, target.size // writers)) for name in range(writers)])


def _create_in_full_directory(target: Target) -> TimedCall:
    """Create files in a directory of many entries. The files of an earlier round are removed before."""
    many = target.once("many", lambda directory: make_empty_files(directory, target.size))
    names = [many / f"new{name}" for name in range(_CREATED)]
    for name in names:
        name.unlink(missing_ok=True)
    return partial(_create_each, names)


def _create_in_full_scope(target: Target) -> TimedCall:
    """Create files in an empty directory. Another directory of the scope has many files."""
    target.once("many", lambda directory: make_empty_files(directory, target.size))
    return partial(_create_each, [target.directory / f"new{name}" for name in range(_CREATED)])


def _create_in_empty_scope(target: Target) -> TimedCall:
    return partial(_create_each, [target.directory / f"new{name}" for name in range(_CREATED)])


def _create_each(paths: list[Path]) -> None:
    for path in paths:
        os.mknod(path, 0o644)


SCALE = (
    Workload(
        "far-1",
        "1 writer appends 200 bytes, Redis with a delay of 1 ms",
        500,
        "lines",
        partial(_append_by, writers=1),
        only=_FAR,
    ),
    Workload(
        "far-16",
        "16 writers append 200 bytes, each to its own file, with that delay",
        4000,
        "lines",
        partial(_append_by, writers=16),
        only=_FAR,
    ),
    Workload(
        "mknod",
        "create empty files in an empty scope",
        0,
        "files",
        _create_in_empty_scope,
        only=_GROWING,
        always=_CREATED,
    ),
    Workload(
        "mknod-full-scope",
        "create empty files in a scope of many files",
        100_000,
        "files",
        _create_in_full_scope,
        only=_GROWING,
        always=_CREATED,
    ),
    Workload(
        "mknod-full-directory",
        "create empty files in a directory of many entries",
        100_000,
        "files",
        _create_in_full_directory,
        only=_GROWING,
        always=_CREATED,
    ),
)
