"""Hydration, without a mount: its start would hide the rest."""

import trio

from bench.growth import stored
from bench.growth.base import SCOPE, Place, Row, Run
from vfsd.scope.hydrate import hydrate
from vfsd.store.base import ClaimTerms
from vfsd.store.memory import MemoryStore
from vfsd.store.owner import this_process
from vfsd.tree.change import ROOT, Change, Op, PutEntry


def _hydrating(ops: list[Op]) -> Run:
    """Return a run that loads a scope of *ops*, one of them a unit."""
    store = MemoryStore()

    async def store_all() -> None:
        claim = await store.claim(SCOPE, this_process("/nowhere"), ClaimTerms())
        await claim.commit(Change(tuple(ops), grows=True))

    async def load() -> None:
        await hydrate(store, SCOPE, lambda _done, _total: None)

    def run() -> int:
        trio.run(load)
        return len(ops)

    trio.run(store_all)
    return run


def _hydrating_files(_place: Place, size: int) -> Run:
    return _hydrating([stored.inode(ROOT, 0o40755, 2), *stored.files(size)])


def _hydrating_links(_place: Place, size: int) -> Run:
    file = ROOT + 1
    ops: list[Op] = [stored.inode(ROOT, 0o40755, 2), stored.inode(file, 0o100644, size)]
    ops += [PutEntry(ROOT, b"f%d" % number, file, stored.FIRST_COOKIE + number) for number in range(size)]
    return _hydrating(ops)


LOADING = (
    Row("load SIZE files", "µs for each record", 5000, _hydrating_files),
    Row("load SIZE hard links of one file", "µs for each record", 5000, _hydrating_links),
)
