"""Comparing a writer's directory with what its model allows: everything in it, or a clear account of the difference."""

import os
from typing import NamedTuple

from tests.support.trees import Facts, Found, differences, look_at
from tests.torture.doubt import State, TransactionInDoubt, states
from tests.torture.model import Model, Node

_SHOWN = 10


class Verdict(NamedTuple):
    """What a directory holds: a *model* of it; at least *steps* and at most *most* of the doubtful operation's."""

    model: Model
    steps: int
    most: int


def check(root: bytes, model: Model, doubt: TransactionInDoubt | None) -> Verdict:
    """Return which of the allowed states the directory *root* is in. Raises AssertionError if in none.

    Allowed is what *model* describes, or, with an operation in *doubt*, what that may have made of it.
    """
    found = look_at(root)
    accounts = []
    fitting: list[State] = []
    for state in states(model, doubt):
        lines = _differences(state.model, found)
        if not lines:
            fitting.append(state)
        accounts.append(f"with {state.steps} steps of it: " + "\n    ".join(lines[:_SHOWN]))
    if fitting:
        return Verdict(fitting[0].model, fitting[0].steps, max(state.steps for state in fitting))
    told = "\n  ".join(accounts)
    raise AssertionError(f"{os.fsdecode(root)} is in no allowed state; in doubt was {doubt!r}\n  {told}")


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
