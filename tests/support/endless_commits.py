"""Commit changes until killed: ``python -m tests.support.endless_commits URL SCOPE FIRST``.

The program prints the number of each change when the change is acknowledged. Change *n* makes inode *n* with a name
and :data:`CHUNKS` chunks. Several commits run at the same time, so a kill always interrupts some of them.
"""

import sys
from itertools import count

import trio

from vfsd.store.base import Claim, ClaimTerms, Store, StoreOptions
from vfsd.store.owner import this_process
from vfsd.store.url import open_store
from vfsd.tree.change import ROOT, Attributes, Change, PutChunks, PutEntry, PutInode

CHUNKS = 5
_TASKS = 4
_FILE = Attributes(0o100644, 1, 0, 0, 0, 1 << 30, 1, 2, 3)


def numbered_change(number: int) -> Change:
    """Return the change numbered *number*."""
    chunks = {index: b"%d/%d " % (number, index) * 300 for index in range(CHUNKS)}
    return Change(
        (PutInode(number, _FILE), PutEntry(ROOT, b"%d" % number, number, number + 1), PutChunks(number, chunks)),
        grows=True,
    )


async def _commit_endlessly(store: Store, claim: Claim, numbers: "count[int]") -> None:
    for number in numbers:
        await claim.commit(numbered_change(number))
        print(number, flush=True)
        await trio.lowlevel.checkpoint()


async def _main(url: str, scope: str, first: int) -> None:
    store = open_store(url, StoreOptions())
    claim = await store.claim(scope, this_process("/mnt/endless"), ClaimTerms())
    numbers = count(first)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(claim.keep)
        for _ in range(_TASKS):
            nursery.start_soon(_commit_endlessly, store, claim, numbers)


if __name__ == "__main__":
    trio.run(_main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
