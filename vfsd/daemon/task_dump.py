"""Describe what every trio task is doing, for an operator whose daemon seems to hang."""

import gc
import traceback
from types import FrameType
from typing import Any

import trio


def describe_tasks() -> str:
    """Return the tree of tasks as text: one line a task, with the source line where it waits."""
    root = trio.lowlevel.current_root_task()
    return "\n".join(_lines(root, 0)) if root is not None else "none"


def _lines(task: trio.lowlevel.Task, depth: int) -> list[str]:
    lines = [f"{'  ' * depth}{task.name}: {_position(task.coro)}"]
    for nursery in task.child_nurseries:
        for child in sorted(nursery.child_tasks, key=lambda child: child.name):
            lines += _lines(child, depth + 1)
    return lines


def _position(awaited: Any) -> str:
    """Return the position of the innermost frame outside trio. Inside trio every task waits at the same line."""
    innermost: FrameType | None = None
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        if frame is not None and not frame.f_globals.get("__name__", "").startswith("trio."):
            innermost = frame
        awaited = _awaited_by(awaited)
    if innermost is None:
        return "?"
    summary = traceback.extract_stack(innermost, limit=1)[0]
    return f"{summary.filename}:{summary.lineno} in {summary.name}"


def _awaited_by(coroutine: Any) -> Any:
    """Return what *coroutine* (or generator) waits for, or None."""
    for name in ("cr_await", "gi_yieldfrom"):
        if hasattr(coroutine, name):
            return getattr(coroutine, name)
    # Between coroutines of Cython and of Python there are wrapper objects without such an attribute. The garbage
    # collector knows which objects they refer to.
    return next((held for held in gc.get_referents(coroutine) if hasattr(held, "cr_await")), None)
