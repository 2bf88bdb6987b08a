"""What every trio task is doing, as text: for an operator with a daemon that seems to hang."""

import traceback
from types import CoroutineType
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


def _place(coroutine: Any) -> str:
    """Return where the innermost Python frame of a suspended *coroutine* stands."""
    frame = None
    while isinstance(coroutine, CoroutineType) and coroutine.cr_frame is not None:
        frame, coroutine = coroutine.cr_frame, coroutine.cr_await
    if frame is None:
        return "?"
    place = traceback.extract_stack(frame, limit=1)[0]
    return f"{place.filename}:{place.lineno} in {place.name}"
