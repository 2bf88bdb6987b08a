"""What changes when there is more of it: writers on a distant server, entries in a directory, files in a scope."""

import os
from functools import partial
from pathlib import Path

from bench.workloads.base import Target, TimedCall, Workload, opened
from bench.workloads.parallel import in_parallel
from bench.workloads.small import LINE, make_empty_files

_FAR = frozenset({"vfsd-redis-far"})
_GROWING = frozenset({"vfsd-redis", "vfsd-redis-tcp", "vfsd-sqlite", "vfsd-memory", "floor", "juicefs", "tmpfs"})
_MADE = 1000
"""Files made among many."""


def _log(target: Target, name: int, lines: int) -> None:
    with opened(target.directory / f"log{name}", os.O_CREAT | os.O_APPEND | os.O_WRONLY) as fd:
        for _ in range(lines):
            os.write(fd, LINE)


def _logging(target: Target, writers: int) -> TimedCall:
    return in_parallel([partial(_log, target, name, max(1, target.size // writers)) for name in range(writers)])


def _in_full_directory(target: Target) -> TimedCall:
    """Make files beside many; those of an earlier round go first."""
    many = target.once("many", lambda directory: make_empty_files(directory, target.size))
    names = [many / f"new{name}" for name in range(_MADE)]
    for name in names:
        name.unlink(missing_ok=True)
    return partial(_make_each, names)


def _in_full_scope(target: Target) -> TimedCall:
    """Make files in a directory of their own, many being elsewhere."""
    target.once("many", lambda directory: make_empty_files(directory, target.size))
    return partial(_make_each, [target.directory / f"new{name}" for name in range(_MADE)])


def _in_empty_scope(target: Target) -> TimedCall:
    return partial(_make_each, [target.directory / f"new{name}" for name in range(_MADE)])


def _make_each(paths: list[Path]) -> None:
    for path in paths:
        os.mknod(path, 0o644)


SCALE = (
    Workload(
        "far-1", "1 writer appends 200 bytes, Redis 1 ms away", 500, "lines", partial(_logging, writers=1), only=_FAR
    ),
    Workload("far-16", "16 writers, each to its own file", 4000, "lines", partial(_logging, writers=16), only=_FAR),
    Workload("mknod", "empty files, in an empty scope", 0, "files", _in_empty_scope, only=_GROWING, always=_MADE),
    Workload(
        "mknod-full-scope",
        "the same in an empty directory of a scope of many files",
        100_000,
        "files",
        _in_full_scope,
        only=_GROWING,
        always=_MADE,
    ),
    Workload(
        "mknod-full-directory",
        "the same in a directory of many entries",
        100_000,
        "files",
        _in_full_directory,
        only=_GROWING,
        always=_MADE,
    ),
)
