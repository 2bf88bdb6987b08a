"""What a torture amounted to, counted."""

import errno
from collections import Counter
from dataclasses import dataclass, field

from tests.torture.log import Account


@dataclass
class Figures:
    """Counts of what was done to the mount, and of what became of the operations meanwhile.

    *settled* tells how many operations in doubt (failed with EIO, or without an answer) turned out to be stored, at
    least in part, and how many absent. Every one of *operations* has been compared with what is there.
    """

    faults: Counter[str] = field(default_factory=Counter)
    operations: int = 0
    acknowledged: int = 0
    failures: Counter[int] = field(default_factory=Counter)
    settled: Counter[bool] = field(default_factory=Counter)
    comparisons: int = 0

    @property
    def doubtful(self) -> int:
        """How many operations were in doubt."""
        return self.settled.total()

    def add(self, account: Account) -> None:
        """Take in what a writer's log said, once it has been compared."""
        self.operations += account.operations + account.refused
        self.acknowledged += account.acknowledged
        self.failures += account.failures
        self.settled += account.settled

    def refuse(self, count: int) -> None:
        """Take in that a mount which had lost the scope refused so many operations."""
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
