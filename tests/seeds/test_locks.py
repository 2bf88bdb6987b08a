"""Changes that share an inode under or above a seed: one waits for the other, although neither names that inode."""

import errno
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import pytest
import trio
import trio.testing

from tests.seeds.seeded_scope import seeded_scope
from tests.support.scopes import InterferingStore
from vfsd.errors import FsError
from vfsd.store.memory import MemoryClaim
from vfsd.tree.change import ROOT, Change
from vfsd.tree.plan_attributes import NewAttributes
from vfsd.tree.plan_names import EntryKey, NewInode

Act: TypeAlias = Callable[[], Awaitable[object]]

FILE = 0o100644
DIRECTORY = 0o40755


class BlockingStore(InterferingStore):
    """Scopes in memory. Commits do not end until ``go_on`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = trio.Event()
        self.go_on.set()

    async def commit(self, claim: MemoryClaim, change: Change) -> None:
        await self.go_on.wait()
        await super().commit(claim, change)

    async def meet(self, acts: Sequence[Act]) -> None:
        """Start *acts* in this order, each as far as it gets before a commit ends. Then let all continue."""
        self.go_on = trio.Event()
        async with trio.open_nursery() as nursery:
            for act in acts:
                nursery.start_soon(act)
                await trio.testing.wait_all_tasks_blocked()
            self.go_on.set()


@pytest.mark.parametrize("first", [True, False])
async def test_a_hidden_file_loses_a_name_while_it_gets_another(first: bool) -> None:
    store = BlockingStore()
    async with seeded_scope(store=store) as scope:
        volume = scope.volume
        hidden = await volume.create(EntryKey(ROOT, b"file"), NewInode(FILE, 0, 0))
        await volume.link(hidden.ino, EntryKey(ROOT, b"other"))
        await volume.create(EntryKey(ROOT, b"d"), NewInode(DIRECTORY, 0, 0))
        directory = scope.inode(b"d").ino
        await scope.seeding.file(b"file", b"seeded", 0o644)
        acts: list[Act] = [
            lambda: volume.setattr(scope.inode(b"file").ino, NewAttributes(mode=0o600)),
            lambda: volume.link(hidden.ino, EntryKey(directory, b"third")),
        ]
        await store.meet(acts if first else acts[::-1])
        assert hidden.attributes.nlink == 2
        await scope.check()


@pytest.mark.parametrize("first", [True, False])
async def test_a_directory_gets_a_stored_subdirectory_while_a_seeded_one_becomes_stored(first: bool) -> None:
    store = BlockingStore()
    async with seeded_scope(store=store) as scope:
        volume = scope.volume
        await scope.seeding.file(b"d/file", b"seeded", 0o644)
        acts: list[Act] = [
            lambda: volume.setattr(scope.inode(b"d/file").ino, NewAttributes(mode=0o600)),
            lambda: volume.create(EntryKey(ROOT, b"e"), NewInode(DIRECTORY, 0, 0)),
        ]
        await store.meet(acts if first else acts[::-1])
        await scope.check()


async def test_a_seed_waits_for_a_file_that_is_being_created_at_the_same_path() -> None:
    store = BlockingStore()
    async with seeded_scope(store=store) as scope:
        store.go_on = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scope.volume.create, EntryKey(ROOT, b"file"), NewInode(FILE, 0, 0))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(scope.seeding.file, b"file", b"seeded", 0o644)
            await trio.testing.wait_all_tasks_blocked()
            assert scope.seeding.seeds() == []
            store.go_on.set()
        assert [seed.state for seed in scope.seeding.seeds()] == ["shadows"]
        await scope.check()


async def test_a_retired_scope_can_still_be_seeded() -> None:
    async with seeded_scope() as scope:
        await scope.seeding.file(b"d/file", b"seeded", 0o644)
        await scope.volume.retire()
        with pytest.raises(FsError) as caught:
            await scope.volume.write(scope.inode(b"d/file").ino, 0, b"x")
        assert caught.value.errno == errno.EROFS
        assert await scope.seeding.file(b"d/file", b"another", 0o644)
        await scope.check()


@pytest.mark.parametrize("first", [True, False])
async def test_a_seed_is_written_to_while_a_stored_directory_far_above_it_is_moved(first: bool) -> None:
    store = BlockingStore()
    async with seeded_scope(store=store) as scope:
        volume = scope.volume
        for path in (b"d", b"d/e"):
            await scope.files.mkdir(path)
        await scope.seeding.file(b"d/e/file", b"seeded", 0o644)
        ino = scope.inode(b"d/e/file").ino
        acts: list[Act] = [
            lambda: volume.write(ino, 0, b"W"),
            lambda: volume.rename(EntryKey(ROOT, b"d"), EntryKey(ROOT, b"moved"), 0),
        ]
        await store.meet(acts if first else acts[::-1])
        assert scope.seeding.seeds() == []
        await scope.check()
