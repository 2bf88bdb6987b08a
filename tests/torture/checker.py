"""Compare everything in a writer's directory with the states that its model allows."""

import os
from typing import NamedTuple

from tests.support.trees import Facts, Found, differences, look_at
from tests.torture.model import Model, Node
from tests.torture.possible_states import OperationInDoubt, PossibleState, possible_states

_SHOWN = 10


class Verdict(NamedTuple):
    """The state of a directory: its *model*, with *steps* to *most* steps of the operation in doubt done."""

    model: Model
    steps: int
    most: int


def check(root: bytes, model: Model, doubt: OperationInDoubt | None) -> Verdict:
    """Return the state of the directory *root*. Raises AssertionError if the state is not allowed.

    The state of *model* is allowed. With an operation in *doubt*, the states after it are allowed too.
    """
    found = look_at(root)
    descriptions = []
    matching: list[PossibleState] = []
    for state in possible_states(model, doubt):
        lines = _differences(state.model, found)
        if not lines:
            matching.append(state)
        descriptions.append(f"with {state.steps} steps of it: " + "\n    ".join(lines[:_SHOWN]))
    if matching:
        return Verdict(matching[0].model, matching[0].steps, max(state.steps for state in matching))
    details = "\n  ".join(descriptions)
    raise AssertionError(
        f"{os.fsdecode(root)} is in no allowed state; the operation in doubt is {doubt!r}\n  {details}"
    )


def expected(model: Model) -> dict[bytes, Facts]:
    """Return what *model* expects of each path."""
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
            lines.append(f"{path!r}: before it was {node.stamp}, now it is {stamp}")
    return lines
