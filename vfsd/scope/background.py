"""Tasks that go on after their request was answered. A bug in one of them must not end the mount."""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

import trio

from vfsd.errors import Fenced, FsError, StoreError

_log = logging.getLogger(__name__)

Storing: TypeAlias = Callable[[], Awaitable[object]]
"""Stores something. Raises StoreError."""

_PAUSE_SECONDS = 1.0


class BackgroundTasks:
    """Starts tasks in *nursery*."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run *work*. A bug in it is logged and does not end the mount."""
        self._nursery.start_soon(_guarded, work)

    def insist(self, storing: Storing, what: str) -> None:
        """Repeat *storing*, which stores *what*, until it succeeds. If it never can, log that."""
        self.start(_insist(storing, what))


async def _guarded(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001 (a bug in the background must not end the mount)
        _log.exception("a background task failed by a bug")


async def _insist(storing: Storing, what: str) -> None:
    while True:
        try:
            await storing()
        except (Fenced, FsError) as error:
            _log.warning("%s will not be stored: %s", what, error)
            return
        except StoreError as error:
            _log.info("%s not stored yet: %s", what, error)
            await trio.sleep(_PAUSE_SECONDS)
        else:
            return
