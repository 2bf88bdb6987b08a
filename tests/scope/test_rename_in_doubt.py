"""Two moves of directories, each sound by itself, must not make a circle together when the first one is in doubt."""

import stat
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from tests.support.in_doubt import LateAnswer
from tests.support.scopes import InterferingStore, scope_in_memory
from vfsd.errors import FsError, InDoubt, StoreUnreachable
from vfsd.scope.volume import Volume
from vfsd.store.memory import MemoryClaim
from vfsd.tree.change import ROOT, Change
from vfsd.tree.plan_names import EntryKey, NewInode


class _Silent(InterferingStore):
    """Stores every commit. Commits get no answer while *doubt* is set."""

    doubt: LateAnswer | None = None

    async def commit(self, claim: MemoryClaim, change: Change) -> None:
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
    async with scope_in_memory(store) as scope:
        await use(scope.volume, store)


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
        assert volume.directory(made["/p/a"]).parent == made["/q/b/c"]
        with pytest.raises(FsError, match="Invalid argument"):
            await volume.rename(EntryKey(made["/q"], b"b"), EntryKey(made["/p/a/d"], b"y"), 0)

    await _with_volume(use)
