"""A writer's log: what it begins, what was acknowledged, what failed. It is stored outside the mount.

Each line is one write(2) before the next event, so it survives the end of the writer. A failed operation is in doubt
until the writer has found out its outcome. So at most one operation is in doubt: the last one.
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
from tests.torture.model import Model
from tests.torture.operation import Operation
from tests.torture.possible_states import NOT_STORED, OperationInDoubt, apply, concerned, possible_states


class Log:
    """Appends to the log at *path*."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def begin(self, operation: Operation) -> None:
        """Record that *operation* begins."""
        self._append("begin", (type(operation).__name__, tuple(operation)))  # type: ignore[arg-type]  # all are tuples

    def step(self) -> None:
        """Record that one more step of it was acknowledged. From now on this step must not be lost."""
        self._append("step", None)

    def acknowledge(self) -> None:
        """Record that all of it was acknowledged."""
        self._append("done", None)

    def fail(self, error: int) -> None:
        """Record that the next step of it failed with *error*."""
        self._append("failed", error)

    def settle(self, steps: int) -> None:
        """Record how many steps of the failed operation are done."""
        self._append("settled", steps)

    def refuse(self, error: int) -> None:
        """Record that another operation was refused without an effect after the scope was lost."""
        self._append("refused", error)

    def stat_result(self, path: bytes, stamp: Stamp) -> None:
        """Record the stat result of *path*."""
        self._append("stat_result", (path, tuple(stamp)))

    def _append(self, what: str, value: object) -> None:
        line = b"%r\n" % ((what, value),)
        assert os.write(self._fd, line) == len(line)


@dataclass(slots=True)
class LogReplay:
    """The content of a log. *model* is the state after it.

    *failures* counts errors by errno. *settled* counts operations in doubt that turned out to be stored, at least in
    part, and those that are absent. *doubt* is the operation without an outcome. *reached* is the last acknowledged
    step with an effect, as the number of the operation and the number of the step.
    """

    model: Model
    operations: int = 0
    acknowledged: int = 0
    refused: int = 0
    failures: Counter[int] = field(default_factory=Counter)
    settled: Counter[bool] = field(default_factory=Counter)
    doubt: OperationInDoubt | None = None
    reached: tuple[int, int] = (0, 0)

    def read(self, path: Path) -> "LogReplay":
        """Read the log at *path*, and return self."""
        for what, value in _lines(path):
            getattr(self, f"_read_{what}")(value)
        return self

    @property
    def _current(self) -> OperationInDoubt:
        assert self.doubt is not None, "the log has an outcome without an operation"
        return self.doubt

    def _read_begin(self, value: tuple[str, tuple[Any, ...]]) -> None:
        name, fields = value
        self.operations += 1
        self.doubt = OperationInDoubt(getattr(op, name)(*fields), 0, None)

    def _read_step(self, _: None) -> None:
        doubt = self._current
        self.doubt = doubt._replace(steps=doubt.steps + 1)
        if not self._is_idle(doubt.operation):
            self.reached = self.operations, self.doubt.steps

    def _is_idle(self, operation: Operation) -> bool:
        """Whether *operation* changes nothing, because both names already belong to the same file."""
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
        self.model = next(state.model for state in possible_states(self.model, doubt) if state.steps == steps)
        if doubt.error not in NOT_STORED:
            self.settled[steps > doubt.steps] += 1
        self._end()

    def _end(self) -> None:
        self.doubt = None
        self.model.forget_touched()

    def _read_refused(self, error: int) -> None:
        self.refused += 1
        self.failures[error] += 1

    def _read_stat_result(self, value: tuple[bytes, tuple[int, int, int]]) -> None:
        path, stamp = value
        self.model.node(path).stamp = Stamp(*stamp)


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the complete lines of the log at *path*."""
    with path.open(encoding="ascii") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield ast.literal_eval(line)
