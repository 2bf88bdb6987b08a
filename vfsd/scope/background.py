"""Work beside the requests: what goes on after its request was answered, and must end neither the mount nor too soon.

Nothing here knows what the work is.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

import trio

from vfsd.errors import Fenced, FsError, StoreError

_log = logging.getLogger(__name__)

Storing: TypeAlias = Callable[[], Awaitable[object]]
"""Stores something; raises StoreError."""

_PAUSE_SECONDS = 1.0


class BackgroundTasks:
    """Starts work in *nursery*."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Let *work* go on. A bug in it is logged, and does not end the mount."""
        self._nursery.start_soon(_guarded, work)

    def insist(self, storing: Storing, what: str) -> None:
        """Try until *storing*, of *what*, succeeds, or never will: then that is logged."""
        self.start(_insist(storing, what))


async def _guarded(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001 (a bug beside the requests must not end the mount)
        _log.exception("a task beside the requests failed by a bug")


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
