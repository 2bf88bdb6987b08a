"""The few states that a directory may be in after an operation that failed or had no answer."""

import copy
import errno
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from tests.torture.model import Model
from tests.torture.operation import Operation
from tests.torture.operations import Rewrite

EMPTIED = -1
"""Number of steps of a rewrite whose first write failed: the open emptied the file, and this is stored separately."""

NOT_STORED = frozenset({errno.ENOSPC, errno.EROFS})
"""Errors after which there is no doubt: the failed change is not stored."""


class OperationInDoubt(NamedTuple):
    """An *operation* with *steps* known to be done. It failed with *error*, or has no answer (None)."""

    operation: Operation
    steps: int
    error: int | None


class PossibleState(NamedTuple):
    """A possible state of a directory: its *model*, with *steps* of the operation in doubt done."""

    model: Model
    steps: int


def possible_states(model: Model, doubt: OperationInDoubt | None) -> Iterator[PossibleState]:
    """Yield the states that *model* may have become.

    Each step is done or not. Steps that the kernel may combine in one request are done together. A call that has not
    returned may have done several steps. After an error the writer touches the paths of the operation (see
    :mod:`tests.torture.writer`), so their times have changed.
    """
    if doubt is None:
        yield PossibleState(model, 0)
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
        yield PossibleState(candidate, steps)


def _possible(model: Model, doubt: OperationInDoubt) -> Iterator[int]:
    """Yield the numbers of steps that may be done."""
    yield doubt.steps
    if doubt.error in NOT_STORED:
        return
    remaining = islice(doubt.operation.steps(copy.deepcopy(model)), doubt.steps, None)
    for further, more in enumerate(remaining, start=1):
        yield doubt.steps + further
        if not more or (doubt.error is not None and further == 2):
            return


def _reach(model: Model, doubt: OperationInDoubt, steps: int) -> bool:
    """Apply *steps* to *model*. Return whether this state is possible."""
    operation = doubt.operation
    if steps != EMPTIED:
        return sum(1 for _ in islice(operation.steps(model), steps)) == steps
    if doubt.steps or not isinstance(operation, Rewrite):
        return False
    operation.empty(model)
    return True


def apply(model: Model, operation: Operation) -> None:
    """Apply all steps of *operation* to *model*."""
    for _ in operation.steps(model):
        pass


def concerned(model: Model, operation: Operation) -> list[bytes]:
    """Return the paths that *operation* changes, at any of its steps. An empty list means that it changes nothing."""
    changed = copy.deepcopy(model)
    changed.forget_touched()
    nodes = list(changed.walk())
    for _ in operation.steps(changed):
        nodes += changed.walk()
    return sorted({path for path, node in nodes if changed.has_touched(node)})
