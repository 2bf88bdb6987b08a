"""The types of a workload and of the place where it runs. A workload must never measure time itself."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from bench.bare_redis import RedisConnection
from bench.candidates import Candidate

TimedCall: TypeAlias = Callable[[], object]
"""The call that is timed. It is called once."""

SECONDS = "s"
"""The unit of a workload whose figure is a time. With any other unit the figure is units per second."""


@dataclass(frozen=True)
class Target:
    """The place of one run: an empty *directory* on the mount of *candidate*.

    *size* is the size of the workload. *scratch* is a directory outside the mount.
    """

    candidate: Candidate
    directory: Path
    size: int
    scratch: Path

    def store(self, fd: int) -> None:
        """Call fsync on *fd* if the candidate acknowledges writes before they are stored."""
        if self.candidate.durable:
            os.fsync(fd)

    def make_cold(self) -> None:
        """See :meth:`Candidate.make_cold`."""
        self.candidate.make_cold()

    def once(self, name: str, fill: Callable[[Path], object]) -> Path:
        """Return the directory *name*. *fill* fills it once for all rounds on this mount."""
        return filled(self.candidate.mountpoint / f"{name}-{self.size}", fill)


def filled(directory: Path, fill: Callable[[Path], object]) -> Path:
    """Return *directory*. If it does not exist, create it and call *fill* with it."""
    if not directory.exists():
        directory.mkdir()
        fill(directory)
    return directory


@dataclass(frozen=True)
class Workload:
    """One line of the report.

    *what* describes it. *size* is the default size: a number of *unit*, or of the files in *what* if the unit is
    SECONDS. *prepare* does everything that is not timed, and returns the call that is timed. *bare* does the same with
    Redis alone. *buffers* is true if some candidates acknowledge the writes before they are stored. *only* names the
    candidates that it is for, and is empty if it is for all. *always* is the number of units of a run, if that is not
    the size.
    """

    name: str
    what: str
    size: int
    unit: str
    prepare: Callable[[Target], TimedCall]
    bare: Callable[[RedisConnection, int], TimedCall] | None = None
    buffers: bool = False
    only: frozenset[str] = frozenset()
    always: int = 0

    def suits(self, candidate: str) -> bool:
        """Whether *candidate* can run this workload."""
        if candidate == "hset":
            return self.bare is not None
        if candidate == "juicefs-fsync":
            return self.buffers and not self.only
        return candidate in self.only if self.only else candidate != "vfsd-redis-far"

    def done(self, size: int) -> int:
        """Return the number of units that a run of *size* does."""
        return 1 if self.unit == SECONDS else self.always or size


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """Open *path* with the system call for the block, then close it."""
    fd = os.open(path, flags, 0o644)
    try:
        yield fd
    finally:
        os.close(fd)
