"""Rounds of torture: writers at work, the daemon killed at a random moment, the scope mounted again and compared.

Everything random is decided by one seed, but for what the moment of the kill decides. Later disturbances of a round
(a frozen store, a cut link, a rival owner) belong beside :meth:`Torture._crash`.
"""

import os
import pickle
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.mounted import PATIENCE, Mounted, wait_until
from tests.torture.checker import check
from tests.torture.log import replay
from tests.torture.model import Model

_REPOSITORY = Path(__file__).parents[2]


class Figures(NamedTuple):
    """What a torture amounted to. *doubtful* operations had no answer; *stored* of them turned out to be (in part)."""

    kills: int = 0
    acknowledged: int = 0
    doubtful: int = 0
    stored: int = 0

    def __str__(self) -> str:
        return (
            f"{self.acknowledged} operations acknowledged, {self.kills} kills,"
            f" {self.doubtful} in doubt ({self.stored} stored, whole)"
        )


class _Apprentice:
    """One writer's directory, and what is known of it. A process works in it from :meth:`start` until the kill."""

    def __init__(self, name: str, base: Path) -> None:
        self.name = name
        self.model = Model()
        self._base = base
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def _log(self) -> Path:
        return self._base / f"{self.name}.log"

    def start(self, directory: Path, seed: str) -> None:
        """Let it work."""
        model = self._base / f"{self.name}.model"
        model.write_bytes(pickle.dumps(self.model))
        self._log.write_bytes(b"")
        command = [sys.executable, "-m", "tests.torture.writer", *map(os.fspath, (directory, model, self._log)), seed]
        self._process = subprocess.Popen(command, cwd=_REPOSITORY, stdin=subprocess.DEVNULL)

    def has_begun(self) -> bool:
        """Whether something has been acknowledged. Fails if the process has ended instead."""
        assert self._process is not None
        assert self._process.poll() is None, f"writer {self.name} ended with {self._process.returncode}"
        return b"('done'" in self._log.read_bytes()

    def wait(self) -> None:
        """Return when its process has ended, as it should once the daemon has."""
        if self._process is not None:
            process, self._process = self._process, None
            assert process.wait(PATIENCE) == 0, f"writer {self.name} failed: see above"

    def check(self, directory: Path, figures: Figures) -> Figures:
        """Compare *directory* with the log, and go on from what is there. Raises AssertionError."""
        acknowledged, doubtful = replay(self._log, self.model) if self._log.exists() else (0, None)
        self._log.unlink(missing_ok=True)
        self.model, steps = check(os.fsencode(directory), self.model, doubtful)
        return figures._replace(
            acknowledged=figures.acknowledged + acknowledged,
            doubtful=figures.doubtful + (doubtful is not None),
            stored=figures.stored + (steps > 0),
        )

    def end(self) -> None:
        """Leave no process behind."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Torture:
    """Tortures *mounted* with some *writers*, whose logs go to *base*; *seed* decides what they do."""

    def __init__(self, mounted: Mounted, base: Path, seed: int, writers: int) -> None:
        self.figures = Figures()
        self._mounted = mounted
        self._rng = random.Random(seed)
        self._writers = [_Apprentice(f"writer{number}", base) for number in range(writers)]
        for writer in self._writers:
            (mounted.path / writer.name).mkdir(mode=0o755)

    def round(self) -> None:
        """Let all but one work, kill, mount again and check everything. Raises AssertionError for what is lost."""
        resting = self._rng.choice(self._writers)
        working = [writer for writer in self._writers if writer is not resting]
        try:
            for writer in working:
                writer.start(self._mounted.path / writer.name, str(self._rng.getrandbits(64)))
            wait_until(lambda: all(writer.has_begun() for writer in working), "the writers")
            time.sleep(self._rng.uniform(0, 1))  # not waiting for anything: the moment is to be random
            self._crash()
            for writer in working:
                writer.wait()
        finally:
            for writer in working:
                writer.end()
        self._check()

    def _crash(self) -> None:
        self._mounted.kill()
        self.figures = self.figures._replace(kills=self.figures.kills + 1)

    def _check(self) -> None:
        self._mounted.start()
        names = sorted(os.listdir(self._mounted.path))
        assert names == sorted(writer.name for writer in self._writers)
        for writer in self._writers:
            self.figures = writer.check(self._mounted.path / writer.name, self.figures)
