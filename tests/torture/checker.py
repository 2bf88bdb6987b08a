"""Comparing a writer's directory with what its model allows: everything in it, or a clear account of the difference."""

import copy
import os
from collections.abc import Iterator
from typing import NamedTuple

from tests.support.trees import Facts, Found, differences, look_at
from tests.torture.log import apply
from tests.torture.model import Model, Node
from tests.torture.operations import Operation

_SHOWN = 10


class Verdict(NamedTuple):
    """What a directory holds: a *model* of it, and how many *steps* of the doubtful operation are in it."""

    model: Model
    steps: int


def check(root: bytes, model: Model, doubtful: Operation | None) -> Verdict:
    """Return which of the allowed states the directory *root* is in. Raises AssertionError if in none.

    Allowed is what *model* describes, and that after each step of *doubtful*.
    """
    found = look_at(root)
    accounts = []
    for steps, candidate in _candidates(model, doubtful):
        lines = _differences(candidate, found)
        if not lines:
            return Verdict(candidate, steps)
        accounts.append(f"with {steps} steps of it: " + "\n    ".join(lines[:_SHOWN]))
    told = "\n  ".join(accounts)
    raise AssertionError(f"{os.fsdecode(root)} is in no allowed state; in doubt was {doubtful!r}\n  {told}")


def _candidates(model: Model, doubtful: Operation | None) -> Iterator[tuple[int, Model]]:
    yield 0, model
    steps = 1
    while doubtful is not None:
        candidate = copy.deepcopy(model)
        if not apply(doubtful, candidate, steps):
            return
        yield steps, candidate
        steps += 1


def expected(model: Model) -> dict[bytes, Facts]:
    """Return what *model* says of each path."""
    nodes = dict(sorted(model.walk()))
    paths: dict[Node, list[bytes]] = {}
    for path, node in nodes.items():
        paths.setdefault(node, []).append(path)
    return {
        path: Facts(
            node.mode,
            os.geteuid(),
            os.getegid(),
            0,
            _links(node, len(paths[node])),
            node.content,
            node.target,
            tuple(sorted(node.xattrs.items())),
            paths[node][0],
        )
        for path, node in nodes.items()
    }


def _links(node: Node, names: int) -> int:
    if not node.is_directory:
        return names
    return 2 + sum(child.is_directory for child in node.entries.values())


def _differences(model: Model, found: Found) -> list[str]:
    lines = differences(expected(model), found.facts)
    for path, node in model.walk():
        stamp = found.stamps.get(path)
        if node.stamp is not None and stamp is not None and node.stamp != stamp:
            lines.append(f"{path!r}: seen before as {node.stamp}, now {stamp}")
    return lines
