"""A program that commits as fast as it can until it is killed: ``python -m tests.support.storm URL SCOPE FIRST``.

It prints the number of each change once that is acknowledged. Change *n* makes inode *n* with a name and
:data:`PIECES` chunks, several at a time, so that a kill always finds some on their way.
"""

import sys
from itertools import count

import trio

from vfsd.store.base import Claim, ClaimTerms, Store, StoreOptions
from vfsd.store.owner import this_process
from vfsd.store.url import open_store
from vfsd.tree.change import ROOT, Attributes, Change, PutChunks, PutEntry, PutInode

PIECES = 5
_SIDE_BY_SIDE = 4
_FILE = Attributes(0o100644, 1, 0, 0, 0, 1 << 30, 1, 2, 3)


def storm_change(number: int) -> Change:
    """Return the change numbered *number*."""
    chunks = {piece: b"%d/%d " % (number, piece) * 300 for piece in range(PIECES)}
    return Change(
        (PutInode(number, _FILE), PutEntry(ROOT, b"%d" % number, number, number), PutChunks(number, chunks)),
        grows=True,
    )


async def _commit_for_ever(store: Store, claim: Claim, numbers: "count[int]") -> None:
    for number in numbers:
        await claim.commit(storm_change(number))
        print(number, flush=True)
        await trio.lowlevel.checkpoint()


async def _main(url: str, scope: str, first: int) -> None:
    store = open_store(url, StoreOptions())
    claim = await store.claim(scope, this_process("/mnt/storm"), ClaimTerms())
    numbers = count(first)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(claim.keep)
        for _ in range(_SIDE_BY_SIDE):
            nursery.start_soon(_commit_for_ever, store, claim, numbers)


if __name__ == "__main__":
    trio.run(_main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
