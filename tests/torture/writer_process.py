"""A writer as the runner sees it: the process at work in a directory, its log, and what is known of the directory."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support.mounted import PATIENCE, wait_until
from tests.torture.checker import check
from tests.torture.doubt import ABSENT
from tests.torture.log import Account
from tests.torture.model import Model

_LAST, _WIDTH = 20, 200
"""Lines and columns of a log that are shown when something is lost."""
_REPOSITORY = Path(__file__).parents[2]


class Tenure:
    """A process that works in *directory*, beginning with *model*; what it leaves behind is named after *base*."""

    def __init__(self, directory: Path, model: Model, base: Path, seed: str) -> None:
        self._model = base.with_suffix(".model")
        self._log = base.with_suffix(".log")
        self._model.write_bytes(pickle.dumps(model))
        self._log.write_bytes(b"")
        command = [sys.executable, "-m", "tests.torture.writer"]
        command += [*map(os.fspath, (directory, self._model, self._log)), seed]
        self._process = subprocess.Popen(command, cwd=_REPOSITORY, stdin=subprocess.PIPE)

    def _says(self, word: str) -> bool:
        assert self._process.poll() is None, f"the writer of {self._log.stem} ended with {self._process.returncode}"
        return f"('{word}'".encode() in self._log.read_bytes()

    def has_begun(self) -> bool:
        """Whether something has been acknowledged. Fails if the process has ended."""
        return self._says("done")

    def is_refused(self) -> bool:
        """Whether an attempt has been refused, after the scope was lost. Fails if the process has ended."""
        return self._says("refused")

    def is_stuck(self) -> bool:
        """Whether it waits for the daemon, as it does for ever while that is frozen, and is not about to run.

        Or for another's rename between directories, which does: the kernel lets a mount have one at a time.
        """
        process = Path(f"/proc/{self._process.pid}")
        stack = (process / "stack").read_text()
        waits = "fuse" in stack or "renameat2" in stack
        return waits and (process / "stat").read_text().rpartition(")")[2].split()[0] in "SD"

    def tell_to_stop(self) -> None:
        """Let it end what it is doing, and itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def wait(self) -> None:
        """Return when it has ended, as it does once it has been told to or the daemon has gone."""
        assert self._process.wait(PATIENCE) == 0, f"the writer of {self._log.stem} failed: see above"

    def account(self) -> Account:
        """Return what it has said so far."""
        return Account(pickle.loads(self._model.read_bytes())).read(self._log)

    def last_words(self) -> str:
        """Return the end of its log, for a person to read."""
        lines = self._log.read_text(encoding="ascii").splitlines()[-_LAST:]
        return "\n    ".join([f"last in {self._log.name}:", *(line[:_WIDTH] for line in lines)])

    def end(self) -> None:
        """Leave no process and no file behind."""
        self._process.kill()
        self._process.wait(PATIENCE)
        self.tell_to_stop()
        self._model.unlink()
        self._log.unlink()


class _Retired(NamedTuple):
    """A tenure over a mount that has lost the scope; how far its work had gone by then, and what had been refused."""

    tenure: Tenure
    reached: tuple[int, int]
    refused: int


class Apprentice:
    """One writer's directory, called *name*, and what is known of it: *model*."""

    def __init__(self, name: str, base: Path) -> None:
        self.name = name
        self.model = Model()
        self._base = base
        self._tenures = 0
        self._tenure: Tenure | None = None
        self._retired: _Retired | None = None

    @property
    def tenure(self) -> Tenure:
        """The process at work."""
        assert self._tenure is not None, f"{self.name} rests"
        return self._tenure

    def start(self, root: Path, seed: str) -> None:
        """Let it work in its directory below *root*."""
        self._tenures += 1
        base = self._base / f"{self.name}-{self._tenures}"
        self._tenure = Tenure(root / self.name, self.model, base, seed)

    def check(self, root: Path) -> Account:
        """Compare its directory with what it has logged, and go on from what is there. Raises AssertionError.

        Returns the account, what was in doubt being settled.
        """
        account = Account(self.model) if self._tenure is None else self._tenure.account()
        doubt = account.doubt
        try:
            self.model, steps, most = check(os.fsencode(root / self.name), account.model, doubt)
        except AssertionError as error:
            error.add_note(self._tenure.last_words() if self._tenure else f"{self.name} was at rest")
            raise
        self.model.forget_touched()
        if doubt is not None:
            account.reached = max(account.reached, (account.operations, most))
            if doubt.error not in ABSENT:
                account.settled[steps > doubt.steps] += 1
        return account

    def retire(self, root: Path) -> Account:
        """Leave the tenure to itself, over a mount that has lost the scope, and go on from what is below *root*."""
        account = self.check(root)
        self._retired, self._tenure = _Retired(self.tenure, account.reached, account.refused), None
        return account

    def check_retired(self) -> int:
        """See the retired tenure refused something, and end it; return how often it was, since it was retired.

        Raises AssertionError if it was told of success after that.
        """
        assert self._retired is not None
        tenure, reached, refused = self._retired
        wait_until(tenure.is_refused, f"{self.name} to be refused")
        tenure.tell_to_stop()
        tenure.wait()
        account = tenure.account()
        assert account.reached <= reached, (
            f"{self.name} was told of success after its scope was lost: step {account.reached[1]} of operation"
            f" {account.reached[0]}, where step {reached[1]} of operation {reached[0]} was the last to be stored"
        )
        return account.refused - refused

    def finish(self) -> None:
        """Tell the process at work to stop, and return when it has."""
        self.tenure.tell_to_stop()
        self.tenure.wait()

    def end(self) -> None:
        """Leave no process behind."""
        if self._tenure is not None:
            self._tenure.end()
        if self._retired is not None:
            self._retired.tenure.end()
        self._tenure = self._retired = None
