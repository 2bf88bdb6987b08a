"""Rounds of torture: writers work while the store has faults, the daemon is killed or frozen, or the scope is claimed.

Each round ends with a comparison of every directory with its writer's log, and of the mount with its store. One seed
decides everything random, except what depends on the moment of a fault.
"""

import enum
import os
import random
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from tests.support.mounted import wait_until
from tests.torture.counts import Counts
from tests.torture.faults import Fault
from tests.torture.scope_mounts import ScopeMounts
from tests.torture.writer_process import TrackedWriter


class Ending(enum.Enum):
    """How a round ends."""

    KILL = "the daemon is killed"
    KILL_DURING_FAULT = "the daemon is killed while the store has a fault"
    CLAIM = "the scope is claimed by a second mount, and the writers continue there"
    CLAIM_WHILE_FROZEN = "the same, while the daemon is frozen"
    REST = "no fault: the writers end"


ENDINGS_WITHOUT_FAULTS = (Ending.KILL, Ending.CLAIM, Ending.CLAIM_WHILE_FROZEN, Ending.REST)
"""Endings that need no fault of the store."""


class Torture:
    """Runs *writers* on *mounts*. Their logs are in *base*, and *rng* decides what they do."""

    def __init__(self, mounts: ScopeMounts, base: Path, rng: random.Random, writers: int, counts: Counts) -> None:
        self._mounts = mounts
        self._rng = rng
        self._counts = counts
        self._writers = [TrackedWriter(f"writer{number}", base) for number in range(writers)]
        for writer in self._writers:
            (mounts.root / writer.name).mkdir(mode=0o755)

    def round(self, faults: Sequence[Fault], ending: Ending) -> None:
        """Let all writers except one work during *faults* and *ending*, then check. Raises AssertionError."""
        paused = self._rng.choice(self._writers)
        working = [writer for writer in self._writers if writer is not paused]
        try:
            self._start(working)
            for number, fault in enumerate(faults, start=1):
                self._let_work()
                with fault():
                    if ending is Ending.KILL_DURING_FAULT and number == len(faults):
                        self._kill()
            self._end(ending, working)
            self._check()
        finally:
            for writer in self._writers:
                writer.end()

    def _start(self, working: Sequence[TrackedWriter]) -> None:
        for writer in working:
            writer.start(self._mounts.mounted, str(self._rng.getrandbits(64)))
        wait_until(lambda: all(writer.process.has_started() for writer in working), "the writers")

    def _let_work(self) -> None:
        time.sleep(self._rng.uniform(0, 1))  # a random moment for the next step: there is nothing to wait for

    def _end(self, ending: Ending, working: Sequence[TrackedWriter]) -> None:
        """End the work of the round. The store has no fault at this point."""
        if not self._mounts.mounted.has_ended():
            self._let_work()
        if ending is Ending.KILL:
            self._kill()
        elif ending in {Ending.CLAIM, Ending.CLAIM_WHILE_FROZEN}:
            self._claim(working, frozen=ending is Ending.CLAIM_WHILE_FROZEN)
        for writer in working:
            writer.finish()
        if self._mounts.mounted.has_ended():
            self._mounts.mounted.start()

    def _claim(self, working: Sequence[TrackedWriter], *, frozen: bool) -> None:
        """Mount again at another path, and let the writers continue there. The old mount must refuse them."""
        before = self._mounts.mounted
        with self._mounts.frozen() if frozen else nullcontext():
            if frozen:
                wait_until(lambda: all(writer.process.is_stuck() for writer in working), "the writers to wait")
            self._mounts.take_over()
            self._counts.faults["claims" + " while the daemon was frozen" * frozen] += 1
            if not frozen:
                wait_until(lambda: all(writer.process.is_refused() for writer in working), "the writers to be refused")
            for writer in working:
                self._counts.add(writer.leave_on_fenced_mount(self._mounts.root))
            self._start(working)
            self._let_work()
        for writer in working:
            self._counts.refuse(writer.check_fenced())
        self._mounts.unmount_fenced(before)
        self._let_work()

    def _kill(self) -> None:
        self._mounts.mounted.kill()
        self._counts.faults["kills of the daemon"] += 1

    def _check(self) -> None:
        names = sorted(os.listdir(self._mounts.root))
        assert names == sorted(writer.name for writer in self._writers)
        for writer in self._writers:
            replay = writer.check(self._mounts.root)
            assert not replay.refused, f"{writer.name} was refused with EROFS, but nobody has claimed the scope"
            self._counts.add(replay)
        self._mounts.compare()
        self._counts.comparisons += 1
