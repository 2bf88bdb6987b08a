"""A writer as the runner sees it: its process, its log, and a model of its directory."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support.mounted import PATIENCE, Mounted, wait_until
from tests.torture.checker import check
from tests.torture.log import LogReplay
from tests.torture.model import Model
from tests.torture.possible_states import NOT_STORED

_LAST, _WIDTH = 20, 200
"""Lines and columns of a log that an error shows."""
_REPOSITORY = Path(__file__).parents[2]


class WriterProcess:
    """A process that works in *directory* of *mounted*, starting from *model*.

    The names of its files begin with *base*.
    """

    def __init__(self, mounted: Mounted, directory: str, model: Model, base: Path, seed: str) -> None:
        self._model = base.with_suffix(".model")
        self._log = base.with_suffix(".log")
        self._model.write_bytes(pickle.dumps(model))
        self._log.write_bytes(b"")
        command = [sys.executable, "-m", "tests.torture.writer"]
        command += [*map(os.fspath, (mounted.path / directory, self._model, self._log)), seed]
        environment = mounted.environment  # says where the control socket is
        self._process = subprocess.Popen(command, cwd=_REPOSITORY, env=environment, stdin=subprocess.PIPE)

    def _has_logged(self, word: str) -> bool:
        assert self._process.poll() is None, f"the writer of {self._log.stem} ended with {self._process.returncode}"
        return f"('{word}'".encode() in self._log.read_bytes()

    def has_started(self) -> bool:
        """Whether an operation has been acknowledged. Fails if the process has ended."""
        return self._has_logged("done")

    def is_refused(self) -> bool:
        """Whether an operation was refused after the scope was lost. Fails if the process has ended."""
        return self._has_logged("refused")

    def is_stuck(self) -> bool:
        """Whether the process waits for the frozen daemon.

        It may also wait for an answer at the control socket (poll), for a page of a mapping (filemap_fault: the request
        for it was sent by a call that has returned), or for another writer's rename between directories, which waits
        for the daemon: the kernel allows one such rename at a time in a mount.
        """
        process = Path(f"/proc/{self._process.pid}")
        stack = (process / "stack").read_text()
        waits = any(function in stack for function in ("fuse", "filemap_fault", "renameat2", "poll", "unix_stream"))
        return waits and (process / "stat").read_text().rpartition(")")[2].split()[0] in "SD"

    def tell_to_stop(self) -> None:
        """Tell the process to finish its operation and to end."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def wait(self) -> None:
        """Wait until the process has ended. It ends if it is told to stop, or if the daemon has ended."""
        assert self._process.wait(PATIENCE) == 0, f"the writer of {self._log.stem} failed: see above"

    def replay(self) -> LogReplay:
        """Return the replay of the log so far."""
        return LogReplay(pickle.loads(self._model.read_bytes())).read(self._log)

    def log_tail(self) -> str:
        """Return the last lines of its log in a readable form."""
        lines = self._log.read_text(encoding="ascii").splitlines()[-_LAST:]
        return "\n    ".join([f"last lines of {self._log.name}:", *(line[:_WIDTH] for line in lines)])

    def end(self) -> None:
        """End the process, and remove its files."""
        self._process.kill()
        self._process.wait(PATIENCE)
        self.tell_to_stop()
        self._model.unlink()
        self._log.unlink()


class _FencedProcess(NamedTuple):
    """A process on a fenced mount.

    *reached* is the last step before the fence, *refused* the number of refused operations at that moment.
    """

    process: WriterProcess
    reached: tuple[int, int]
    refused: int


class TrackedWriter:
    """The directory *name* of one writer, with a *model* of its content."""

    def __init__(self, name: str, base: Path) -> None:
        self.name = name
        self.model = Model()
        self._base = base
        self._starts = 0
        self._process: WriterProcess | None = None
        self._fenced: _FencedProcess | None = None

    @property
    def process(self) -> WriterProcess:
        """The running process."""
        assert self._process is not None, f"{self.name} has no process"
        return self._process

    def start(self, mounted: Mounted, seed: str) -> None:
        """Start a process in its directory of *mounted*."""
        self._starts += 1
        base = self._base / f"{self.name}-{self._starts}"
        self._process = WriterProcess(mounted, self.name, self.model, base, seed)

    def check(self, root: Path) -> LogReplay:
        """Compare its directory with its log, and let the model be the current state. Raises AssertionError.

        Return the replay of the log. An operation in doubt is settled in it.
        """
        replay = LogReplay(self.model) if self._process is None else self._process.replay()
        doubt = replay.doubt
        try:
            self.model, steps, most = check(os.fsencode(root / self.name), replay.model, doubt)
        except AssertionError as error:
            error.add_note(self._process.log_tail() if self._process else f"{self.name} had no process")
            raise
        self.model.forget_touched()
        if doubt is not None:
            replay.reached = max(replay.reached, (replay.operations, most))
            if doubt.error not in NOT_STORED:
                replay.settled[steps > doubt.steps] += 1
        return replay

    def leave_on_fenced_mount(self, root: Path) -> LogReplay:
        """Let the process continue on the fenced mount. Compare the directory below *root*, the new mount."""
        replay = self.check(root)
        self._fenced, self._process = _FencedProcess(self.process, replay.reached, replay.refused), None
        return replay

    def check_fenced(self) -> int:
        """Wait until the process on the fenced mount is refused, and end it.

        Return how many operations were refused after the fence. Raises AssertionError if one succeeded.
        """
        assert self._fenced is not None
        process, reached, refused = self._fenced
        wait_until(process.is_refused, f"{self.name} to be refused")
        process.tell_to_stop()
        process.wait()
        replay = process.replay()
        assert replay.reached <= reached, (
            f"{self.name} had success after its scope was lost: step {replay.reached[1]} of operation"
            f" {replay.reached[0]}, but the last stored one is step {reached[1]} of operation {reached[0]}"
        )
        return replay.refused - refused

    def finish(self) -> None:
        """Tell the process to stop, and wait until it has ended."""
        self.process.tell_to_stop()
        self.process.wait()

    def end(self) -> None:
        """End all processes."""
        if self._process is not None:
            self._process.end()
        if self._fenced is not None:
            self._fenced.process.end()
        self._process = self._fenced = None
