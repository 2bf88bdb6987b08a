"""What the pipeline asks hooks, when, and what it does with the answer. The hooks here record every call."""

import errno
from collections.abc import Iterable

import pytest
import trio
import trio.testing

from tests.support.in_doubt import LateAnswer
from tests.support.scopes import InterferingStore
from tests.support.stores import remote_owner
from vfsd.errors import FsError, InDoubt, StoreUnreachable
from vfsd.scope.background import BackgroundTasks
from vfsd.scope.hooks import Effects, Hook, Mutation, NoKernelCache
from vfsd.scope.hydrate import hydrate
from vfsd.scope.volume import Backing, Volume
from vfsd.store.base import ClaimTerms
from vfsd.store.memory import MemoryClaim
from vfsd.tree.change import ROOT, Change, Op, PutInode
from vfsd.tree.draft import Draft
from vfsd.tree.plan_attributes import NewAttributes
from vfsd.tree.plan_names import EntryKey, NewInode
from vfsd.tree.tree import Tree

FILE = 0o100644


class Store(InterferingStore):
    """Records commits, and raises *trouble* after them."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[Change] = []
        self.trouble: Exception | None = None

    async def commit(self, claim: MemoryClaim, change: Change) -> None:
        if self.trouble is not None:
            raise self.trouble
        await super().commit(claim, change)
        self.commits.append(change)


class RecordingHook(Hook):
    """Records what it is asked; *touching* and *stamping* are inodes that it adds."""

    def __init__(self, tree: Tree, name: bytes | None = None) -> None:
        self.active = name is None
        self.wakes_on = frozenset() if name is None else frozenset({name})
        self.asked: list[str] = []
        self.touching: list[int] = []
        self.stamping: list[int] = []
        self.further: Mutation | None = None
        self.untold: tuple[Op, ...] = ()
        self._tree = tree

    def touched(self, inos: tuple[int, ...]) -> Iterable[int]:
        self.asked.append("touched")
        return self.touching

    def additions(self, change: Change, now_ns: int) -> tuple[Op, ...]:
        self.asked.append("additions")
        draft = Draft(self._tree, now_ns)
        for ino in self.stamping:
            draft.modify(ino)
        return draft.change(grows=False).ops

    def effects(self, effects: Effects, inos: tuple[int, ...], now_ns: int) -> Effects:
        self.asked.append("effects")
        effects.untold = self.untold
        return effects

    def applying(self, effects: Effects) -> None:
        self.asked.append("applying")

    def applied(self, effects: Effects, inos: tuple[int, ...]) -> Mutation | None:
        self.asked.append("applied")
        further, self.further = self.further, None
        return further


class Kernel(NoKernelCache):
    """Records what it is told."""

    def __init__(self) -> None:
        self.told: list[Op] = []

    async def forget(self, change: Change) -> None:
        self.told.extend(change.ops)


class ScopeWithHook:
    """A volume with one hook, and a file in it."""

    def __init__(self, nursery: trio.Nursery, name: bytes | None) -> None:
        self.tree, self.store, self.kernel = Tree(), Store(), Kernel()
        self.hook = RecordingHook(self.tree, name)
        self._nursery = nursery

    async def mount(self) -> "ScopeWithHook":
        claim = await self.store.claim("scope", remote_owner(), ClaimTerms())
        background = BackgroundTasks(self._nursery)
        self.volume = Volume(self.tree, Backing(self.store, claim), background, hooks=[self.hook], kernel=self.kernel)
        await self.volume.make_root(0, 0)
        self.file = await self.create(b"file")
        self.other = await self.create(b"other")
        self.hook.asked.clear()
        self.store.commits.clear()
        return self

    async def create(self, name: bytes) -> int:
        return (await self.volume.create(EntryKey(ROOT, name), NewInode(FILE, 0, 0))).ino

    async def write(self) -> None:
        await self.volume.write(self.file, 0, b"text")

    def committed(self) -> set[int]:
        """Return the inodes that the last commit had."""
        return {op.ino for op in self.store.commits[-1].ops if isinstance(op, PutInode)}


async def scene(nursery: trio.Nursery, name: bytes | None = None) -> ScopeWithHook:
    return await ScopeWithHook(nursery, name).mount()


async def test_an_active_hook_is_asked_at_every_step_in_order(nursery: trio.Nursery) -> None:
    here = await scene(nursery)
    await here.write()
    assert here.hook.asked == ["touched", "additions", "effects", "applying", "applied"]


async def test_an_idle_hook_is_asked_nothing(nursery: trio.Nursery) -> None:
    here = await scene(nursery, b"wake up")
    await here.write()
    await here.volume.unlink(EntryKey(ROOT, b"other"))
    assert here.hook.asked == []


async def test_an_idle_hook_is_woken_by_a_name_that_comes_or_goes(nursery: trio.Nursery) -> None:
    here = await scene(nursery, b"wake up")
    await here.create(b"wake up")
    assert here.hook.asked == ["additions", "applying", "applied"]
    await here.volume.unlink(EntryKey(ROOT, b"wake up"))
    assert here.hook.asked[3:] == ["additions", "applying", "applied"]


async def test_an_idle_hook_is_told_of_a_change_that_the_store_does_not_get(nursery: trio.Nursery) -> None:
    here = await scene(nursery, b"wake up")
    await here.write()
    await here.volume.truncate_on_open(here.file)
    assert here.hook.asked == ["applying", "applied"]


async def test_additions_are_part_of_the_commit_and_their_inodes_are_locked(nursery: trio.Nursery) -> None:
    here = await scene(nursery)
    here.hook.stamping = [here.other, ROOT]
    await here.write()
    assert here.committed() == {here.file, here.other, ROOT}
    assert len(here.store.commits) == 1
    assert here.hook.asked.count("additions") == 2, "planned again once the locks are held"


async def test_a_change_waits_for_what_a_hook_touches(nursery: trio.Nursery) -> None:
    here = await scene(nursery)
    here.store.trouble = doubt = LateAnswer()
    with pytest.raises(InDoubt):
        await here.volume.setattr(here.other, NewAttributes(mode=0o600))
    here.store.trouble = None
    here.hook.touching = [here.other]
    with pytest.raises(StoreUnreachable):
        await here.write()
    doubt.resolved.set()
    await trio.testing.wait_all_tasks_blocked()
    await here.write()


async def test_a_change_that_follows_is_made_before_the_answer(nursery: trio.Nursery) -> None:
    here = await scene(nursery)
    touch = Mutation(lambda: (here.other,), lambda now_ns: _stamp(here.tree, here.other, now_ns), "a stamp")
    here.hook.further = touch
    await here.write()
    assert [len(change.ops) for change in here.store.commits] == [2, 1]
    assert here.committed() == {here.other}


async def test_a_change_that_follows_and_fails_does_not_fail_the_first_and_is_repeated(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    here = await scene(nursery)

    def plan(now_ns: int) -> Change:
        here.store.trouble = StoreUnreachable("away") if len(here.store.commits) == 1 and not failed else None
        failed.append(here.store.trouble is not None)
        return _stamp(here.tree, here.other, now_ns)

    failed: list[bool] = []
    here.hook.further = Mutation(lambda: (here.other,), plan, "a stamp")
    await here.write()
    assert failed == [True]
    await trio.sleep(5)
    assert failed == [True, False]
    assert here.committed() == {here.other}


def _stamp(tree: Tree, ino: int, now_ns: int) -> Change:
    draft = Draft(tree, now_ns)
    draft.modify(ino)
    return draft.change(grows=False)


async def test_the_kernel_is_told_what_it_cannot_infer(nursery: trio.Nursery) -> None:
    here = await scene(nursery)
    await here.write()
    await trio.testing.wait_all_tasks_blocked()
    assert here.kernel.told == []
    here.hook.untold = (PutInode(here.other, here.tree.inode(here.other).attributes),)
    await here.write()
    await trio.testing.wait_all_tasks_blocked()
    assert here.kernel.told == list(here.hook.untold)


async def test_a_change_that_turns_out_to_be_stored_is_recorded_and_the_kernel_told(nursery: trio.Nursery) -> None:
    here = await scene(nursery)
    here.store.trouble = doubt = LateAnswer()
    with pytest.raises(InDoubt):
        await here.write()
    assert "applied" not in here.hook.asked
    assert here.volume.read(here.file, 0, 9) == b""
    doubt.resolved.set()
    await trio.testing.wait_all_tasks_blocked()
    assert here.hook.asked[-1] == "applied"
    assert here.volume.read(here.file, 0, 9) == b"text"
    assert any(isinstance(op, PutInode) and op.ino == here.file for op in here.kernel.told)


async def test_a_failed_commit_is_recorded_nowhere(nursery: trio.Nursery) -> None:
    here = await scene(nursery)
    here.store.trouble = StoreUnreachable("away")
    with pytest.raises(StoreUnreachable):
        await here.write()
    assert "applied" not in here.hook.asked
    assert here.volume.read(here.file, 0, 9) == b""
    here.store.trouble = None
    await here.write()


async def test_a_retired_scope_refuses_changes_and_stays_readable(nursery: trio.Nursery) -> None:
    here = await scene(nursery)
    await here.write()
    await here.volume.retire()
    await here.volume.retire()
    with pytest.raises(FsError) as caught:
        await here.write()
    assert caught.value.errno == errno.EROFS
    assert here.volume.read(here.file, 0, 9) == b"text"
    found = await hydrate(here.store, "scope", lambda _done, _total: None)
    assert found.inodes.keys() == here.tree.inodes.keys()
