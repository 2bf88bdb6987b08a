"""A background task measures the capacity of the store. No error there ends the mount."""

import trio
import trio.testing

from vfsd.daemon.lifecycle import keep_measuring
from vfsd.errors import StoreUnreachable
from vfsd.scope.background import BackgroundTasks
from vfsd.scope.volume import Backing, Volume
from vfsd.store.base import Capacity
from vfsd.store.memory import MemoryStore
from vfsd.tree.tree import Tree

ERRORS = [OSError(24, "Too many open files"), StoreUnreachable("away")]


class FailingStore(MemoryStore):
    """Fails with a different error each time, and then answers."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = trio.Event()
        self._errors: list[Exception] = list(ERRORS)

    async def capacity(self) -> Capacity:
        if self._errors:
            raise self._errors.pop()
        self.answered.set()
        return await super().capacity()


async def test_measuring_continues_after_errors(autojump_clock: trio.testing.MockClock) -> None:
    store = FailingStore()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_measuring, Volume(Tree(), Backing(store, None), BackgroundTasks(nursery)))
        await store.answered.wait()
        nursery.cancel_scope.cancel()
