"""What every trio task is doing, as text: for an operator with a daemon that seems to hang."""

import gc
import traceback
from types import FrameType
from typing import Any

import trio


def describe_tasks() -> str:
    """Return the tree of tasks, each with the line it waits at."""
    root = trio.lowlevel.current_root_task()
    return "\n".join(_described(root, 0)) if root is not None else "none"


def _described(task: trio.lowlevel.Task, depth: int) -> list[str]:
    lines = [f"{'  ' * depth}{task.name}: {_place(task.coro)}"]
    for nursery in task.child_nurseries:
        for child in sorted(nursery.child_tasks, key=lambda child: child.name):
            lines += _described(child, depth + 1)
    return lines


def _place(awaited: Any) -> str:
    """Return where the innermost frame outside trio stands: within trio every task waits at the same line."""
    innermost: FrameType | None = None
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None and not frame.f_globals.get("__name__", "").startswith("trio."):
            innermost = frame
        awaited = _awaited_by(awaited)
    if innermost is None:
        return "?"
    place = traceback.extract_stack(innermost, limit=1)[0]
    return f"{place.filename}:{place.lineno} in {place.name}"


def _awaited_by(awaiting: Any) -> Any:
    """Return what a coroutine or generator waits for, or None."""
    for name in ("cr_await", "gi_yieldfrom"):
        if hasattr(awaiting, name):
            return getattr(awaiting, name)
    # Between Cython's coroutines and Python's stand wrappers that tell nothing; the collector knows what they hold.
    return next((held for held in gc.get_referents(awaiting) if hasattr(held, "cr_await")), None)
