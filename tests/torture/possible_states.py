"""An operation that failed, or had no answer: the states it may have left, which are few, and no others."""

import copy
import errno
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from tests.torture.model import Model
from tests.torture.operation import Operation
from tests.torture.operations import Rewrite

EMPTIED = -1
"""Steps of a rewrite whose first write failed: the file had been emptied by opening it, which is stored on its own."""

ABSENT = frozenset({errno.ENOSPC, errno.EROFS})
"""Errors after which there is no doubt: what failed has not been done."""


class TransactionInDoubt(NamedTuple):
    """An *operation* of which *steps* are known to be done; it failed with *error*, None if no answer ever came."""

    operation: Operation
    steps: int
    error: int | None


class State(NamedTuple):
    """A state that a directory may be in: a *model* of it, and how many *steps* of the doubtful operation are in it."""

    model: Model
    steps: int


def states(model: Model, doubt: TransactionInDoubt | None) -> Iterator[State]:
    """Yield what *model* may have become.

    Each step is there or not, and those that the kernel may make one of are so together; a call that is not over may
    have made several. Whoever has had an error looks for its effect by touching what it concerns (see the writer).
    """
    if doubt is None:
        yield State(model, 0)
        return
    touched = [] if doubt.error is None else concerned(model, doubt.operation)
    for steps in (*_possible(model, doubt), EMPTIED):
        candidate = copy.deepcopy(model)
        if not _reach(candidate, doubt, steps):
            continue
        for path in touched:
            node = candidate.look_for(path)
            if node is not None:
                candidate.touch(node)
        yield State(candidate, steps)


def _possible(model: Model, doubt: TransactionInDoubt) -> Iterator[int]:
    """Yield the numbers of steps that may be done."""
    yield doubt.steps
    if doubt.error in ABSENT:
        return
    going = islice(doubt.operation.steps(copy.deepcopy(model)), doubt.steps, None)
    for further, more in enumerate(going, start=1):
        yield doubt.steps + further
        if not more or (doubt.error is not None and further == 2):
            return


def _reach(model: Model, doubt: TransactionInDoubt, steps: int) -> bool:
    """Do *steps* to *model*; return whether that makes sense."""
    operation = doubt.operation
    if steps != EMPTIED:
        return sum(1 for _ in islice(operation.steps(model), steps)) == steps
    if doubt.steps or not isinstance(operation, Rewrite):
        return False
    operation.empty(model)
    return True


def apply(model: Model, operation: Operation) -> None:
    """Do all of *operation* to *model*."""
    for _ in operation.steps(model):
        pass


def concerned(model: Model, operation: Operation) -> list[bytes]:
    """Return the paths that *operation* touches, before, while and after it; none means that it changes nothing."""
    done = copy.deepcopy(model)
    done.forget_touched()
    seen = list(done.walk())
    for _ in operation.steps(done):
        seen += done.walk()
    return sorted({path for path, node in seen if done.has_touched(node)})
