"""A store that makes others wait, fails now and then, and sometimes does not say whether it has failed."""

import random

import trio

from tests.support.scopes import InterferingStore
from vfsd.errors import InDoubt, StoreUnreachable
from vfsd.store.memory import MemoryClaim
from vfsd.tree.change import Change


class Undecided(InDoubt):
    """A commit whose fate becomes known after a while."""

    def __init__(self, *, stored: bool, turns: int) -> None:
        super().__init__("no answer")
        self._stored = stored
        self._turns = turns

    async def settled(self) -> bool:
        for _ in range(self._turns):
            await trio.lowlevel.checkpoint()
        return self._stored


class WaveringStore(InterferingStore):
    """Scopes in memory, whose commits are chancy: *chance* decides."""

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
        fate = self._chance.random()
        if fate < 0.1:
            raise StoreUnreachable("away")
        if fate < 0.9:
            await super().commit(claim, change)
        if fate >= 0.8:
            raise Undecided(stored=fate < 0.9, turns=self._chance.randrange(5))
