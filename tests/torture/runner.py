"""Rounds of torture: writers at work while the store is disturbed, the daemon killed or frozen, the scope claimed.

After each round every directory is compared with its writer's log, and the mount with what its store holds. Everything
random is decided by one seed, but for what the moment of a fault decides.
"""

import enum
import os
import random
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from tests.support.mounted import wait_until
from tests.torture.apprentice import Apprentice
from tests.torture.faults import Fault
from tests.torture.figures import Figures
from tests.torture.stage import Stage


class Ending(enum.Enum):
    """How a round ends."""

    KILL = "the daemon is killed"
    KILL_AMID_FAULT = "the daemon is killed while the store is disturbed"
    CLAIM = "the scope is claimed elsewhere, and the writers go on there"
    CLAIM_WHILE_FROZEN = "the same, while the daemon is frozen"
    REST = "nothing happens: the writers end"


FAULTLESS = (Ending.KILL, Ending.CLAIM, Ending.CLAIM_WHILE_FROZEN, Ending.REST)
"""Endings that need no fault of the store."""


class Torture:
    """Tortures *stage* with some *writers*, whose logs go to *base*; *rng* decides what they do."""

    def __init__(self, stage: Stage, base: Path, rng: random.Random, writers: int, figures: Figures) -> None:
        self._stage = stage
        self._rng = rng
        self._figures = figures
        self._writers = [Apprentice(f"writer{number}", base) for number in range(writers)]
        for writer in self._writers:
            (stage.root / writer.name).mkdir(mode=0o755)

    def round(self, faults: Sequence[Fault], ending: Ending) -> None:
        """Let all but one writer work while *faults* come, then *ending*; check. AssertionError for what is lost."""
        resting = self._rng.choice(self._writers)
        working = [writer for writer in self._writers if writer is not resting]
        try:
            self._start(working)
            for number, fault in enumerate(faults, start=1):
                self._let_work()
                with fault():
                    if ending is Ending.KILL_AMID_FAULT and number == len(faults):
                        self._kill()
            self._end(ending, working)
            self._check()
        finally:
            for writer in self._writers:
                writer.end()

    def _start(self, working: Sequence[Apprentice]) -> None:
        for writer in working:
            writer.start(self._stage.root, str(self._rng.getrandbits(64)))
        wait_until(lambda: all(writer.tenure.has_begun() for writer in working), "the writers")

    def _let_work(self) -> None:
        time.sleep(self._rng.uniform(0, 1))  # not waiting for anything: the moment of what follows is to be random

    def _end(self, ending: Ending, working: Sequence[Apprentice]) -> None:
        """End the round's work, the store being well again."""
        if not self._stage.mounted.has_ended():
            self._let_work()
        if ending is Ending.KILL:
            self._kill()
        elif ending in {Ending.CLAIM, Ending.CLAIM_WHILE_FROZEN}:
            self._claim(working, frozen=ending is Ending.CLAIM_WHILE_FROZEN)
        for writer in working:
            writer.finish()
        if self._stage.mounted.has_ended():
            self._stage.mounted.start()

    def _claim(self, working: Sequence[Apprentice], *, frozen: bool) -> None:
        """Mount elsewhere, and let the writers go on there; the old mount must refuse them, thawed or not."""
        before = self._stage.mounted
        with before.frozen() if frozen else nullcontext():
            if frozen:
                wait_until(lambda: all(writer.tenure.is_stuck() for writer in working), "the writers to wait")
            self._stage.take_over()
            self._figures.faults["claims" + " while the daemon was frozen" * frozen] += 1
            if not frozen:
                wait_until(lambda: all(writer.tenure.is_refused() for writer in working), "the writers to be refused")
            for writer in working:
                self._figures.add(writer.retire(self._stage.root))
            self._start(working)
            self._let_work()
        for writer in working:
            self._figures.refuse(writer.check_retired())
        self._stage.leave(before)
        self._let_work()

    def _kill(self) -> None:
        self._stage.mounted.kill()
        self._figures.faults["kills of the daemon"] += 1

    def _check(self) -> None:
        names = sorted(os.listdir(self._stage.root))
        assert names == sorted(writer.name for writer in self._writers)
        for writer in self._writers:
            account = writer.check(self._stage.root)
            assert not account.refused, f"{writer.name} was refused with EROFS, and nobody had claimed the scope"
            self._figures.add(account)
        self._stage.compare()
        self._figures.comparisons += 1
