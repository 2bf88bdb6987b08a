"""A writer's log: what it was about to do, what was acknowledged, what failed. It lives outside the mount.

A line is written by one system call before the next thing happens, so it survives the end of the writer. What failed
is in doubt until the writer has found out what has come of it; so at most one operation is, the last one.
"""

import ast
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.trees import Stamp
from tests.torture import operations as op
from tests.torture.doubt import ABSENT, TransactionInDoubt, apply, concerned, states
from tests.torture.model import Model
from tests.torture.operation import Operation

_KINDS = {kind.__name__: kind for kind in op.OPERATIONS}


class Log:
    """Appends to the log at *path*."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def intend(self, operation: Operation) -> None:
        """Record what is about to be done."""
        self._append("intend", (type(operation).__name__, tuple(operation)))  # type: ignore[arg-type]  # all are tuples

    def step(self) -> None:
        """Record that one more step of it has been done: from here on that must never be lost."""
        self._append("step", None)

    def acknowledge(self) -> None:
        """Record that all of it has been done."""
        self._append("done", None)

    def fail(self, error: int) -> None:
        """Record that no more of it has been done, so far as the error tells."""
        self._append("failed", error)

    def settle(self, steps: int) -> None:
        """Record how many steps of what failed turned out to be done."""
        self._append("settled", steps)

    def refuse(self, error: int) -> None:
        """Record that yet another operation was refused, with no effect, after the scope was lost."""
        self._append("refused", error)

    def saw(self, path: bytes, stamp: Stamp) -> None:
        """Record what a stat of *path* showed."""
        self._append("saw", (path, tuple(stamp)))

    def _append(self, what: str, value: object) -> None:
        line = b"%r\n" % ((what, value),)
        assert os.write(self._fd, line) == len(line)


@dataclass(slots=True)
class Account:
    """What a log says, *model* being what it has led to.

    *failures* counts errors by number; *settled* how many operations in doubt turned out to be stored, at least in
    part, and how many absent. *doubt* is the operation that has no outcome. *reached* is the last that was
    acknowledged and had an effect: the number of the operation, and of its step.
    """

    model: Model
    operations: int = 0
    acknowledged: int = 0
    refused: int = 0
    failures: Counter[int] = field(default_factory=Counter)
    settled: Counter[bool] = field(default_factory=Counter)
    doubt: TransactionInDoubt | None = None
    reached: tuple[int, int] = (0, 0)

    def read(self, path: Path) -> "Account":
        """Take in all of the log at *path*; return this."""
        for what, value in _lines(path):
            getattr(self, f"_read_{what}")(value)
        return self

    @property
    def _current(self) -> TransactionInDoubt:
        assert self.doubt is not None, "the log tells the outcome of nothing"
        return self.doubt

    def _read_intend(self, value: tuple[str, tuple[Any, ...]]) -> None:
        name, fields = value
        self.operations += 1
        self.doubt = TransactionInDoubt(_KINDS[name](*fields), 0, None)

    def _read_step(self, _: None) -> None:
        doubt = self._current
        self.doubt = doubt._replace(steps=doubt.steps + 1)
        if not self._is_idle(doubt.operation):
            self.reached = self.operations, self.doubt.steps

    def _is_idle(self, operation: Operation) -> bool:
        """Whether *operation* changes nothing: it moves a name to another of the same file."""
        return isinstance(operation, (op.Rename, op.Exchange)) and not concerned(self.model, operation)

    def _read_done(self, _: None) -> None:
        apply(self.model, self._current.operation)
        self.acknowledged += 1
        self._end()

    def _read_failed(self, error: int) -> None:
        self.failures[error] += 1
        self.doubt = self._current._replace(error=error)

    def _read_settled(self, steps: int) -> None:
        doubt = self._current
        self.model = next(state.model for state in states(self.model, doubt) if state.steps == steps)
        if doubt.error not in ABSENT:
            self.settled[steps > doubt.steps] += 1
        self._end()

    def _end(self) -> None:
        self.doubt = None
        self.model.forget_touched()

    def _read_refused(self, error: int) -> None:
        self.refused += 1
        self.failures[error] += 1

    def _read_saw(self, value: tuple[bytes, tuple[int, int, int]]) -> None:
        path, stamp = value
        self.model.node(path).stamp = Stamp(*stamp)


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the lines of the log at *path*; one that is being written is not there yet."""
    with path.open(encoding="ascii") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield ast.literal_eval(line)
