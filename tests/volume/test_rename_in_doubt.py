"""Two moves of directories, each sound by itself, must not make a circle together when the first one is in doubt."""

import stat
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from tests.support.in_doubt import LateAnswer
from vfsd.errors import FsError, InDoubt, StoreUnreachable
from vfsd.scope.memory_limit import MemoryLimit
from vfsd.scope.volume import Volume
from vfsd.store.base import Claim, ClaimTerms
from vfsd.store.memory import MemoryStore
from vfsd.store.owner import this_process
from vfsd.tree.change import ROOT, Change
from vfsd.tree.plan_names import EntryKey, NewInode
from vfsd.tree.tree import Tree


class _Silent(MemoryStore):
    """Stores every commit, and answers none that comes while *doubt* is set."""

    doubt: LateAnswer | None = None

    async def commit(self, claim: Claim, change: Change) -> None:
        await super().commit(claim, change)
        if self.doubt is not None:
            raise self.doubt


async def _directories(volume: Volume) -> dict[str, int]:
    made = {"": ROOT}
    for path in ("/p", "/q", "/p/a", "/p/a/d", "/q/b", "/q/b/c"):
        parent, _, name = path.rpartition("/")
        new = NewInode(stat.S_IFDIR | 0o755, 0, 0)
        made[path] = (await volume.create(EntryKey(made[parent], name.encode()), new)).ino
    return made


async def _with_volume(use: Callable[[Volume, _Silent], Awaitable[None]]) -> None:
    store = _Silent()
    claim = await store.claim("scope", this_process("/mnt"), ClaimTerms())
    async with trio.open_nursery() as nursery:
        volume = Volume(Tree(), store, claim, nursery, MemoryLimit(0))
        await volume.found(0, 0)
        await use(volume, store)


async def test_a_move_waits_for_the_doubt_about_another() -> None:
    async def use(volume: Volume, store: _Silent) -> None:
        made = await _directories(volume)
        store.doubt = doubt = LateAnswer()
        with pytest.raises(InDoubt):
            await volume.rename(EntryKey(made["/p"], b"a"), EntryKey(made["/q/b/c"], b"x"), 0)
        store.doubt = None
        with pytest.raises(StoreUnreachable):
            await volume.rename(EntryKey(made["/q"], b"b"), EntryKey(made["/p/a/d"], b"y"), 0)
        doubt.resolved.set()
        await trio.testing.wait_all_tasks_blocked()
        assert volume.tree.is_below(made["/p/a/d"], made["/q/b"])
        with pytest.raises(FsError, match="Invalid argument"):
            await volume.rename(EntryKey(made["/q"], b"b"), EntryKey(made["/p/a/d"], b"y"), 0)

    await _with_volume(use)
