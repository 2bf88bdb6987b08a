"""Counts of operations and faults."""

import errno
from collections import Counter
from dataclasses import dataclass, field

from tests.torture.log import LogReplay


@dataclass
class Counts:
    """Counts of the faults, and of the operations with their outcomes.

    *settled* is how many operations in doubt (failed with EIO, or without an answer) turned out to be stored, at least
    in part, and how many absent. All *operations* have been compared with the mount.
    """

    faults: Counter[str] = field(default_factory=Counter)
    operations: int = 0
    acknowledged: int = 0
    failures: Counter[int] = field(default_factory=Counter)
    settled: Counter[bool] = field(default_factory=Counter)
    comparisons: int = 0

    @property
    def doubtful(self) -> int:
        """The number of operations that were in doubt."""
        return self.settled.total()

    def add(self, replay: LogReplay) -> None:
        """Add the replay of a writer's log, after its comparison."""
        self.operations += replay.operations + replay.refused
        self.acknowledged += replay.acknowledged
        self.failures += replay.failures
        self.settled += replay.settled

    def refuse(self, count: int) -> None:
        """Add *count* operations that a fenced mount refused."""
        self.operations += count
        self.failures[errno.EROFS] += count

    def __str__(self) -> str:
        names = sorted((errno.errorcode[number], count) for number, count in self.failures.items())
        failed = ", ".join(f"{count} {name}" for name, count in names) or "none"
        faults = ", ".join(f"{count} {fault}" for fault, count in sorted(self.faults.items())) or "none"
        return (
            f"operations: {self.operations}, acknowledged {self.acknowledged},"
            f" failed {self.failures.total()} ({failed}),"
            f" in doubt {self.doubtful} ({self.settled[True]} stored, {self.settled[False]} absent);"
            f" faults: {faults}; trees compared: {self.comparisons}, operations checked: {self.operations}"
        )
