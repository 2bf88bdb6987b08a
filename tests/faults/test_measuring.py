"""The store's room is measured beside the requests: no trouble with that ends a mount."""

import trio
import trio.testing

from vfsd.daemon.lifecycle import keep_measuring
from vfsd.errors import StoreUnreachable
from vfsd.scope.background import BackgroundTasks
from vfsd.scope.volume import Backing, Volume
from vfsd.store.base import Capacity
from vfsd.store.memory import MemoryStore
from vfsd.tree.tree import Tree

TROUBLES = [OSError(24, "Too many open files"), StoreUnreachable("away")]


class Troubled(MemoryStore):
    """Fails each time in another way, and then answers."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = trio.Event()
        self._troubles: list[Exception] = list(TROUBLES)

    async def capacity(self) -> Capacity:
        if self._troubles:
            raise self._troubles.pop()
        self.answered.set()
        return await super().capacity()


async def test_measuring_goes_on_whatever_happened(autojump_clock: trio.testing.MockClock) -> None:
    store = Troubled()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_measuring, Volume(Tree(), Backing(store, None), BackgroundTasks(nursery)))
        await store.answered.wait()
        nursery.cancel_scope.cancel()
