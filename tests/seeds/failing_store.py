"""A store that delays commits, fails at random, and sometimes leaves a commit in doubt."""

import random

import trio

from tests.support.scopes import InterferingStore
from vfsd.errors import InDoubt, StoreUnreachable
from vfsd.store.memory import MemoryClaim
from vfsd.tree.change import Change


class SettledLater(InDoubt):
    """A commit whose outcome becomes known after some *checkpoints*."""

    def __init__(self, *, stored: bool, checkpoints: int) -> None:
        super().__init__("no answer")
        self._stored = stored
        self._checkpoints = checkpoints

    async def settled(self) -> bool:
        for _ in range(self._checkpoints):
            await trio.lowlevel.checkpoint()
        return self._stored


class FailingStore(InterferingStore):
    """Scopes in memory. *chance* decides what happens to a commit, unless the store is *steady*."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance
        self.steady = True

    async def commit(self, claim: MemoryClaim, change: Change) -> None:
        if self.steady:
            await super().commit(claim, change)
            return
        for _ in range(self._chance.randrange(5)):
            await trio.lowlevel.checkpoint()
        outcome = self._chance.random()
        if outcome < 0.1:
            raise StoreUnreachable("away")
        if outcome < 0.9:
            await super().commit(claim, change)
        if outcome >= 0.8:
            raise SettledLater(stored=outcome < 0.9, checkpoints=self._chance.randrange(5))
