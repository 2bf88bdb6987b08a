"""The shape of a workload, and what it finds when it is run. It must never time anything itself."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from bench.bare_redis import RedisConnection
from bench.candidates import Candidate

TimedCall: TypeAlias = Callable[[], object]
"""What is timed. It is called once."""

SECONDS = "s"
"""The unit of a workload whose figure is how long it takes; any other unit is what is done a second."""


@dataclass(frozen=True)
class Target:
    """Where a workload is run: *directory* is its own and empty, *size* what was asked for, *scratch* off the mount."""

    candidate: Candidate
    directory: Path
    size: int
    scratch: Path

    def store(self, fd: int) -> None:
        """Have what was written to *fd* stored, where the candidate acknowledges before that."""
        if self.candidate.durable:
            os.fsync(fd)

    def make_cold(self) -> None:
        """Make the candidate cold."""
        self.candidate.make_cold()

    def once(self, name: str, fill: Callable[[Path], object]) -> Path:
        """Return the directory *name* that *fill* has filled: once for all rounds on this mount."""
        return filled(self.candidate.mountpoint / f"{name}-{self.size}", fill)


def filled(directory: Path, fill: Callable[[Path], object]) -> Path:
    """Return *directory*, which *fill* fills if it is not there yet."""
    if not directory.exists():
        directory.mkdir()
        fill(directory)
    return directory


@dataclass(frozen=True)
class Workload:
    """One line of the report.

    *size* is how much it does by default, in *unit*, or where that is seconds in what *what* says. *bare* does the
    same to Redis alone. *buffers* says that some candidates acknowledge this before it is stored. *only* names the
    candidates that it is for, where it is not for all. *always* is how many units a run does,
    where that is not the size.
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
        """Whether it is for *candidate* at all."""
        if candidate == "hset":
            return self.bare is not None
        if candidate == "juicefs-fsync":
            return self.buffers and not self.only
        return candidate in self.only if self.only else candidate != "vfsd-redis-far"

    def done(self, size: int) -> int:
        """How many units a run of *size* counts for."""
        return 1 if self.unit == SECONDS else self.always or size


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """Open *path* by the plain system call, and close it."""
    fd = os.open(path, flags, 0o644)
    try:
        yield fd
    finally:
        os.close(fd)
