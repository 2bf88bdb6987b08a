"""A writer's log: what it was about to do, and what was acknowledged. It lives outside the mount.

A line is written by one system call before the next thing happens, so it survives the end of the writer. The last
operation without an acknowledgement is the one in doubt; there is at most one.
"""

import ast
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.trees import Stamp
from tests.torture import operations
from tests.torture.model import Model

_KINDS = {kind.__name__: kind for kind in operations.OPERATIONS}


class Log:
    """Appends to the log at *path*."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def intend(self, operation: operations.Operation) -> None:
        """Record what is about to be done."""
        self._append("intend", (type(operation).__name__, tuple(operation)))  # type: ignore[arg-type]  # all are tuples

    def acknowledge(self) -> None:
        """Record that it has been done: from here on it must never be lost."""
        self._append("done", None)

    def saw(self, path: bytes, stamp: Stamp) -> None:
        """Record what a stat of *path* showed."""
        self._append("saw", (path, tuple(stamp)))

    def _append(self, what: str, value: object) -> None:
        line = b"%r\n" % ((what, value),)
        assert os.write(self._fd, line) == len(line)


class Replayed(NamedTuple):
    """What a log says: how many operations were acknowledged, and the one that was not, if any."""

    acknowledged: int
    doubtful: operations.Operation | None


def replay(path: Path, model: Model) -> Replayed:
    """Do to *model* what the log at *path* says was acknowledged."""
    acknowledged = 0
    intended: operations.Operation | None = None
    for what, value in _lines(path):
        if what == "intend":
            name, fields = value
            intended = _KINDS[name](*fields)
        elif what == "done":
            assert intended is not None
            apply(intended, model)
            acknowledged, intended = acknowledged + 1, None
        else:
            model.node(value[0]).stamp = Stamp(*value[1])
    return Replayed(acknowledged, intended)


def apply(operation: operations.Operation, model: Model, steps: int | None = None) -> bool:
    """Do *steps* of *operation* (all by default) to *model*; return whether there were as many."""
    going = operation.steps(model)
    if steps is None:
        return not any(going)
    return sum(1 for _ in islice(going, steps)) == steps


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open(encoding="ascii") as lines:
        for line in lines:
            yield ast.literal_eval(line)
