"""Directory times while commits are under way: read too early, in doubt, side by side, refused."""

import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from tests.support.in_doubt import LateAnswer
from tests.support.scopes import InterferingStore, ScopeInMemory, scope_in_memory
from vfsd.errors import InDoubt, StoreUnreachable
from vfsd.scope.hooks import NoKernelCache
from vfsd.seeds.frontmatter import SKILL
from vfsd.store.memory import MemoryClaim
from vfsd.tree.change import ROOT, Attributes, Change, PutInode
from vfsd.tree.plan_names import EntryKey, NewInode

DIRECTORY, FILE = stat.S_IFDIR | 0o755, stat.S_IFREG | 0o644
HAPPENS = 3


class _InterruptedStore(InterferingStore):
    """Awaits *meanwhile*, stores the change, and then raises *trouble*, if it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[Change] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.trouble: Exception | None = None

    async def commit(self, claim: MemoryClaim, change: Change) -> None:
        interruption, self.meanwhile = self.meanwhile, None
        if interruption is not None:
            await interruption()
        if isinstance(self.trouble, StoreUnreachable) and not isinstance(self.trouble, InDoubt):
            raise self.trouble
        await super().commit(claim, change)
        self.commits.append(change)
        if self.trouble is not None:
            raise self.trouble

    def stored(self, ino: int) -> Attributes:
        """Return the attributes that were stored last."""
        ops = [op for change in self.commits for op in change.ops if isinstance(op, PutInode) and op.ino == ino]
        return ops[-1].attributes


class _Kernel(NoKernelCache):
    """Records the directories of which it is told that their times moved."""

    def __init__(self) -> None:
        self.moved: list[int] = []

    def forget_attributes(self, inos: Iterable[int]) -> None:
        self.moved.extend(inos)


class Scope:
    """``/review/{SKILL.md,references/guide.md}`` and ``/elsewhere``."""

    def __init__(self, scope: ScopeInMemory, store: _InterruptedStore, moved: list[int]) -> None:
        self.volume = scope.volume
        self.store = store
        self.moved = moved

    async def stock(self) -> None:
        self.review = await self.create(ROOT, b"review", DIRECTORY)
        self.skill = await self.create(self.review, SKILL, FILE)
        self.references = await self.create(self.review, b"references", DIRECTORY)
        self.guide = await self.create(self.references, b"guide.md", FILE)
        self.elsewhere = await self.create(ROOT, b"elsewhere", DIRECTORY)
        self.store.commits.clear()
        self.moved.clear()

    async def create(self, parent: int, name: bytes, mode: int) -> int:
        return (await self.volume.create(EntryKey(parent, name), NewInode(mode, 0, 0))).ino

    def look(self, ino: int) -> int:
        """Read the modification time of *ino*, in milliseconds."""
        inode = self.volume.inode(ino)
        inode.shown = True
        return inode.attributes.mtime_ns // 1_000_000

    def check_stored(self, *inos: int) -> None:
        for ino in inos:
            assert self.store.stored(ino) == self.volume.inode(ino).attributes


@asynccontextmanager
async def stocked() -> AsyncIterator[Scope]:
    store, kernel = _InterruptedStore(), _Kernel()
    async with scope_in_memory(store, kernel=kernel) as made:
        scope = Scope(made, store, kernel.moved)
        await scope.stock()
        yield scope


async def test_a_time_moves_in_the_same_commit_and_the_kernel_is_told() -> None:
    async with stocked() as scope:
        before = scope.look(scope.review)
        await scope.volume.write(scope.guide, 0, b"x")
        assert scope.look(scope.review) > before
        assert len(scope.store.commits) == 1
        assert scope.moved == [scope.review]
        scope.check_stored(scope.review)


async def test_a_thousand_appends_store_a_time_once_if_nobody_reads_it() -> None:
    async with stocked() as scope:
        scope.look(scope.review)
        for number in range(1000):
            await scope.volume.write(scope.guide, number, b"x")
        times = [op for change in scope.store.commits for op in change.ops if op[0] == scope.review]
        assert len(scope.store.commits) == 1000
        assert len(times) == 1


async def test_a_time_read_during_the_commit_changes_again_before_the_answer() -> None:
    async with stocked() as scope:
        seen: list[int] = []

        async def look() -> None:
            seen.append(scope.look(scope.review))

        scope.store.meanwhile = look
        await scope.volume.write(scope.guide, 0, b"x")
        assert scope.look(scope.review) > seen[0]
        assert len(scope.store.commits) == 2
        assert scope.moved == [scope.review]
        scope.check_stored(scope.review)


async def test_a_time_that_cannot_change_at_once_changes_when_the_store_is_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with stocked() as scope:
        seen: list[int] = []

        async def look() -> None:
            seen.append(scope.look(scope.review))
            scope.store.meanwhile = None

        scope.store.meanwhile = look
        commit = scope.store.commit

        async def fail_from_the_second(claim: MemoryClaim, change: Change) -> None:
            await commit(claim, change)
            scope.store.trouble = StoreUnreachable("away")

        scope.store.commit = fail_from_the_second  # type: ignore[method-assign]
        await scope.volume.write(scope.guide, 0, b"x")
        scope.store.commit = commit  # type: ignore[method-assign]
        assert scope.look(scope.review) == seen[0]
        await trio.sleep(HAPPENS)
        scope.store.trouble = None
        await trio.sleep(HAPPENS)
        assert scope.look(scope.review) > seen[0]
        scope.check_stored(scope.review)


async def test_a_directory_moved_below_another_during_a_commit_changes_the_time_of_that_one_too() -> None:
    async with stocked() as scope:
        seen: list[int] = []

        async def rename() -> None:
            await scope.volume.rename(EntryKey(ROOT, b"review"), EntryKey(scope.elsewhere, b"review"), 0)
            seen.append(scope.look(scope.elsewhere))

        scope.store.meanwhile = rename
        await scope.volume.write(scope.guide, 0, b"x")
        assert scope.look(scope.elsewhere) > seen[0]
        scope.check_stored(scope.elsewhere)


async def test_times_move_when_a_doubt_is_settled() -> None:
    async with stocked() as scope:
        before = scope.look(scope.review)
        scope.store.trouble = doubt = LateAnswer()
        with pytest.raises(InDoubt):
            await scope.volume.write(scope.guide, 0, b"x")
        scope.store.trouble = None
        assert scope.look(scope.review) == before
        with pytest.raises(StoreUnreachable):
            await scope.create(scope.review, b"new", FILE)
        doubt.resolved.set()
        await trio.testing.wait_all_tasks_blocked()
        assert scope.look(scope.review) > before
        assert scope.moved == [scope.review]
        scope.check_stored(scope.review)


async def test_a_change_that_fails_moves_nothing() -> None:
    async with stocked() as scope:
        before = scope.look(scope.review)
        scope.store.trouble = StoreUnreachable("away")
        with pytest.raises(StoreUnreachable):
            await scope.volume.write(scope.guide, 0, b"x")
        assert scope.look(scope.review) == before
        assert scope.moved == []


async def test_writers_side_by_side_below_one_skill() -> None:
    async with stocked() as scope:
        files = [await scope.create(scope.references, b"%d" % number, FILE) for number in range(20)]

        async def write(ino: int) -> None:
            for offset in range(20):
                before = scope.look(scope.review)
                await scope.volume.write(ino, offset, b"x")
                assert scope.look(scope.review) > before
                await scope.create(scope.review, b"%d-%d" % (ino, offset), FILE)

        async with trio.open_nursery() as nursery:
            for ino in files:
                nursery.start_soon(write, ino)
        scope.check_stored(scope.review)


async def test_a_truncation_on_open_moves_times_at_once_and_stores_them_with_the_next_write() -> None:
    async with stocked() as scope:
        await scope.volume.write(scope.guide, 0, b"text")
        scope.store.commits.clear()
        before = scope.look(scope.review)
        await scope.volume.truncate_on_open(scope.guide)
        assert scope.store.commits == []
        assert scope.volume.inode(scope.review).attributes.mtime_ns // 1_000_000 > before
        await scope.volume.write(scope.guide, 0, b"new")
        assert len(scope.store.commits) == 1
        scope.check_stored(scope.review, scope.guide)


async def test_a_truncation_on_open_without_a_write_stores_the_times_too() -> None:
    async with stocked() as scope:
        await scope.volume.write(scope.guide, 0, b"text")
        scope.look(scope.review)
        await scope.volume.truncate_on_open(scope.guide)
        await scope.volume.drain()
        scope.check_stored(scope.review, scope.guide)
        scope.store.commits.clear()
        await scope.volume.write(scope.guide, 0, b"text")
        assert not any(op[0] == scope.review for change in scope.store.commits for op in change.ops)
