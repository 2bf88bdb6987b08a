"""Scopes of empty files that are stored without a mount, which takes less time than to make them one by one."""

import trio

from vfsd.store.base import ClaimTerms, StoreOptions
from vfsd.store.owner import this_process
from vfsd.store.url import open_store
from vfsd.tree.change import ROOT, Attributes, Change, Op, PutEntry, PutInode

FIRST_COOKIE = 3
_OPS_AT_ONCE = 2000


def inode(ino: int, mode: int, nlink: int) -> PutInode:
    """Return the operation that makes an empty inode."""
    return PutInode(ino, Attributes(mode, nlink, 0, 0, 0, 0, 0, 0, 0))


def files(size: int, parent: int = ROOT) -> list[Op]:
    """Return the operations that make *size* empty files, f0 and so on, in the directory *parent*."""
    ops: list[Op] = []
    for number in range(size):
        ino = parent + 1 + number
        ops += [inode(ino, 0o100644, 1), PutEntry(parent, b"f%d" % number, ino, FIRST_COOKIE + number)]
    return ops


def directories(size: int, most: int) -> list[Op]:
    """Return the operations that make a scope of *size* files in directories, d0 and so on, of at most *most* files."""
    starts = range(0, size, most)
    ops: list[Op] = [inode(ROOT, 0o40755, 2 + len(starts))]
    for number, start in enumerate(starts):
        ino = ROOT + 1 + number + start  # after all that came before
        ops += [inode(ino, 0o40755, 2), PutEntry(ROOT, b"d%d" % number, ino, FIRST_COOKIE + number)]
        ops += files(min(most, size - start), ino)
    return ops


def store(url: str, scope: str, ops: list[Op]) -> None:
    """Store *ops* in the new scope *scope* of the store at *url*."""
    trio.run(_store, url, scope, ops)


async def _store(url: str, scope: str, ops: list[Op]) -> None:
    opened = open_store(url, StoreOptions())
    claim = await opened.claim(scope, this_process("/nowhere"), ClaimTerms())
    for start in range(0, len(ops), _OPS_AT_ONCE):
        await claim.commit(Change(tuple(ops[start : start + _OPS_AT_ONCE]), grows=True))
    await claim.release()
    await opened.aclose()
