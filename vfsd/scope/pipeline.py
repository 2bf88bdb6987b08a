"""The one way a mounted tree changes: plan → commit → apply, a turn at a time for each inode.

A change is planned against memory (pure, may refuse), made durable by the store, and only then applied, so that no
reader sees what could still be lost, and a failure leaves memory and store as they were. A change whose fate is
unknown keeps its turn until the store has settled it.

Where the times of directories must move with what lies far below them they are part of the
change, and of its turn.

The one exception is the truncation by ``open(O_TRUNC)``: memory has it at once, the store with the next change of
that file, or when it is closed. So a rewrite by open, write, close is one commit, and a crash in between leaves the
old file.

A seeding is no such change: it takes turns like one, but the store never hears of it.
"""

import errno
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import trio

from vfsd import clock
from vfsd.config import DirectoryMtime
from vfsd.errors import FsError, InDoubt, StoreError
from vfsd.scope.background import BackgroundTasks
from vfsd.scope.deferred import DeferredWrites
from vfsd.scope.inode_locks import InodeLocks, Touched
from vfsd.scope.memory_limit import MemoryLimit
from vfsd.scope.quota import Demand, Quota
from vfsd.seeds.directory_mtime import DirectoryTimes
from vfsd.seeds.overlay import SeedOverlay
from vfsd.seeds.plan import SeedPlan, touched
from vfsd.seeds.root_references import appearing
from vfsd.seeds.translate import Step
from vfsd.store.base import Claim, Store
from vfsd.tree.change import Change, Limits, PutInode
from vfsd.tree.plan_attributes import NewAttributes, plan_setattr
from vfsd.tree.tree import Tree

_log = logging.getLogger(__name__)

Plan: TypeAlias = Callable[[int], Change]
"""Plans a change for the time it is given (ns)."""

PlanSeeds: TypeAlias = Callable[[int], SeedPlan]
"""Plans a seeding for the time it is given (ns)."""

OnSettled: TypeAlias = Callable[[Change], Coroutine[Any, Any, None]]
"""Told of a change that the kernel cannot know of: nobody asked for it through the mount, or was told it failed."""

OnMoved: TypeAlias = Callable[[tuple[int, ...]], None]
"""Told, before the caller is answered, of directories with skills in or below them whose times a change has moved."""


class _Drafted(NamedTuple):
    """A change that has the turn on *inos*, with the times of the directories *moved* added to it; not checked yet."""

    change: Change
    now_ns: int
    inos: tuple[int, ...]
    moved: tuple[int, ...]


class _Planned(NamedTuple):
    """A change that may be made: what it is to memory and store, whose turn it holds, the room it takes."""

    step: Step
    inos: tuple[int, ...]
    demand: Demand


class Pipeline:
    """Makes the changes of *tree*, kept by *store* under *claim*; without a claim there are none (EROFS).

    *memory* may refuse what would make the daemon too large. *nursery* carries on with what outlives a request.
    ``on_settled`` hears of changes that were stored after all, and of seedings; ``on_moved`` of directories' times, as
    ``times`` moves them; ``last_error`` is when (ns) the store last failed, and how. ``seeds`` is what of the tree is
    not the store's, ``behind`` what the store has still to get.
    """

    def __init__(
        self, tree: Tree, store: Store, claim: Claim | None, nursery: trio.Nursery, memory: MemoryLimit
    ) -> None:
        self.limits = Limits() if claim is None else claim.limits
        self.seeds = SeedOverlay(tree)
        self.times = DirectoryTimes(tree, DirectoryMtime.SKILLS)
        self._quota = Quota(tree, self.limits, memory, self.seeds.ledger)
        self.on_settled: OnSettled = _nobody_to_tell
        self.on_moved: OnMoved = _nobody_to_notify
        self.last_error: tuple[int, str] | None = None
        self._tree = tree
        self._store = store
        self._claim = claim
        self._beside = BackgroundTasks(nursery)
        self._turns = InodeLocks()
        self.behind = DeferredWrites(tree, self.seeds.ledger, self.make, self._beside)

    async def make(self, touched: Touched, plan: Plan) -> Change:
        """Take the turn on what is *touched*, *plan*, commit, apply; return the change. Raises FsError, StoreError."""
        claim = self._writable_claim()
        planned = await self._planned(touched, plan)
        seen = await self._carry_out(claim, planned)
        if planned.step.unlinked:
            self._beside.start(self.on_settled(Change(planned.step.unlinked, grows=False)))
        await self._move_seen(seen)
        return planned.step.memory

    async def plant(self, plan: PlanSeeds) -> SeedPlan:
        """Carry out a seeding that *plan* plans, in memory alone, and tell the kernel. Raises FsError, InDoubt.

        It needs no claim. Files that are emptied but not stored so yet stay that, be they hidden or not.
        """

        def timed(now_ns: int) -> SeedPlan:
            planted = plan(now_ns)
            return planted._replace(change=self.times.moving(planted.change, self._due(planted.change), now_ns))

        inos = await self._turns.take_all(lambda: self.seeds.touched(touched(self._tree, timed(clock.now()).change)))
        try:
            planted = timed(clock.now())
            self._quota.check_memory(planted.change)
            self._take_in(planted.change)
            self.seeds.planted(planted)
            self.behind.seeded(planted.change)
        finally:
            self._turns.give_back(inos)
        with trio.CancelScope(shield=True):  # the kernel is to know even if who asked has gone
            await self.on_settled(Change((*planted.change.ops, *appearing(planted.skills.values())), grows=False))
        return planted

    async def _planned(self, touched: Touched, plan: Plan) -> _Planned:
        """Take the turn on what is *touched*, and *plan* what is to become of memory and store."""
        drafted = await self._drafted(touched, plan)
        try:
            step = self.seeds.translated(drafted.change, drafted.now_ns)
            return _Planned(step, drafted.inos, self._quota.reserve(step))
        except BaseException:
            self._turns.give_back(drafted.inos)
            raise

    async def _drafted(self, touched: Touched, plan: Plan) -> _Drafted:
        """Take the turn on what is *touched* and plan; again with that of the directories whose times must move too."""
        moving: tuple[int, ...] = ()
        while True:
            inos = await self._turns.take_all(partial(self._all_touched, touched, moving))
            try:
                now_ns = clock.now()
                change = plan(now_ns)
                moving = self._due(change)
                if set(moving).issubset(inos):
                    return _Drafted(self.times.moving(change, moving, now_ns), now_ns, inos, moving)
            except BaseException:
                self._turns.give_back(inos)
                raise
            self._turns.give_back(inos)

    def _all_touched(self, touched: Touched, moving: tuple[int, ...]) -> tuple[int, ...]:
        return self.seeds.touched((*touched(), *moving))

    def _due(self, change: Change) -> tuple[int, ...]:
        """Return the directories above *change* whose times must move with it, but for those it moves anyway."""
        above = self.times.above(change)
        stirred = self.times.around(self.seeds.stirred(change) | self.behind.stirred(change))
        due = {*self.times.seen(above), *self.behind.owed((*above, *stirred))}
        return tuple(due - {op.ino for op in change.ops if isinstance(op, PutInode)})

    async def _carry_out(self, claim: Claim, planned: _Planned) -> tuple[int, ...]:
        """Commit and apply what is *planned*; turn and reserved room are given back, unless it is left in doubt.

        Returns what :meth:`_apply` does.
        """
        try:
            if planned.step.store.ops and not self._is_forgotten(planned.inos):
                await self._commit(claim, planned)
            seen = self._apply(planned)
        except InDoubt as doubt:
            self._turns.leave_in_doubt(planned.inos, doubt)
            self._beside.start(self._settle(doubt, planned))
            raise
        except BaseException:
            self._end(planned)
            raise
        self._end(planned)
        return seen

    async def sync(self, ino: int) -> None:
        """Do what fsync of *ino* promises beyond what every change already has. Raises StoreError."""
        if self._claim is not None:
            await self.behind.catch_up(ino)
            await self._noting_errors(self._store.sync())

    def retire(self) -> None:
        """Make no further change (EROFS), for all that is stored is about to go. What memory holds stays readable."""
        self._claim = None
        self.behind.clear()

    def _writable_claim(self) -> Claim:
        if self._claim is None:
            raise FsError(errno.EROFS)
        self._store.raise_if_unusable(self._claim)
        return self._claim

    def _is_forgotten(self, inos: tuple[int, ...]) -> bool:
        """Whether a change concerns just one inode, and that has lost its last name: it lives in memory only."""
        only = self._tree.inodes.get(inos[0])
        return len(inos) == 1 and only is not None and only.is_orphan

    async def _commit(self, claim: Claim, planned: _Planned) -> None:
        """Make a change durable; files the store is behind with lose their old content in the same step."""
        change = planned.step.store
        ops = (*self.behind.truncations(planned.inos), *change.ops)
        await self._noting_errors(self._store.commit(claim, Change(ops, change.grows)))

    async def _noting_errors(self, asking: Awaitable[None]) -> None:
        try:
            await asking
        except StoreError as error:
            self.last_error = (clock.now(), str(error))
            raise

    def _apply(self, planned: _Planned) -> tuple[int, ...]:
        """Take a stored change into memory: the store is no longer behind with what it touched.

        Returns the directories above it whose times it had not to move when it was planned, but now: somebody has seen
        them while the change was on its way, or a directory was moved below them.
        """
        seen = self._take_in(planned.step.memory)
        self.seeds.applied(planned.step)
        self.behind.stored(planned.inos if planned.step.memory.ops else (), planned.step.store)
        return seen

    def _take_in(self, change: Change) -> tuple[int, ...]:
        """Take *change* into memory. Returns what :meth:`_apply` does."""
        above = self.times.above(change)
        moved = self.times.moved(change, above)
        self._tree.apply(change)
        if moved:
            self.on_moved(moved)
        return self.times.seen(above) if above else ()

    async def _move_seen(self, inos: tuple[int, ...]) -> None:
        """Move the times of directories that were seen while something below them changed; insist, if that fails."""
        if not inos:
            return

        def plan(now_ns: int) -> Change:
            return self.times.moving(Change((), grows=False), self.times.seen(inos), now_ns)

        moving = partial(self.make, lambda: self.times.seen(inos), plan)
        try:
            await moving()
        except StoreError:
            self._beside.insist(moving, "new times of directories")

    def _end(self, planned: _Planned) -> None:
        self._quota.give_back(planned.demand)
        self._turns.give_back(planned.inos)

    async def _settle(self, doubt: InDoubt, planned: _Planned) -> None:
        """Keep the turn until it is known whether what is *planned* was stored, and then let memory agree.

        Whoever caches is told before the turn ends: a change that was planned on what is cached would undo it in part.
        """
        seen: tuple[int, ...] = ()
        try:
            if await doubt.settled():
                seen = self._apply(planned)
                await self.on_settled(planned.step.memory)
                _log.warning("a change that was answered with an error turned out to be stored: now it is visible")
        finally:
            self._end(planned)
        await self._move_seen(seen)

    # --- truncation on open

    async def truncate_on_open(self, ino: int) -> None:
        """Empty *ino* in memory: it is opened with O_TRUNC. Errors: see :func:`plan_setattr`; ENOSPC for a seed."""
        self._writable_claim()
        drafted = await self._drafted(
            lambda: (ino,), lambda now_ns: plan_setattr(self._tree, ino, NewAttributes(size=0), now_ns)
        )
        try:
            self._quota.check(self.seeds.translated(drafted.change, drafted.now_ns))
            self._take_in(drafted.change)
            self.seeds.ledger.emptied(ino)
            if not self._is_forgotten(drafted.inos):
                self.behind.emptied(ino, drafted.moved)
        finally:
            self._turns.give_back(drafted.inos)


async def _nobody_to_tell(_change: Change) -> None:
    """Stand in until there is a mount, whose kernel caches."""


def _nobody_to_notify(_inos: tuple[int, ...]) -> None:
    """Stand in likewise."""
