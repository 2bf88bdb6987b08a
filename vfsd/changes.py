"""The one way a mounted tree changes: plan → commit → apply, a turn at a time for each inode.

A change is planned against memory (pure, may refuse), made durable by the store, and only then applied, so that no
reader sees what could still be lost, and a failure leaves memory and store as they were. A change whose fate is
unknown keeps its turn until the store has settled it.

The one exception is the truncation by ``open(O_TRUNC)``: memory has it at once, the store with the next change of
that file, or when it is closed. So a rewrite by open, write, close is one commit, and a crash in between leaves the
old file.

A seeding is no such change: it takes turns like one, but the store never hears of it.
"""

import errno
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

import trio

from vfsd import clock
from vfsd.errors import Fenced, FsError, InDoubt, StoreError
from vfsd.memory import MemoryCap
from vfsd.quota import Demand, Quota
from vfsd.skills.planting import Planted, touched
from vfsd.skills.seeds import Seeds
from vfsd.skills.translation import Step
from vfsd.store.base import Claim, Store
from vfsd.tree.attributes import NewAttributes, plan_setattr
from vfsd.tree.change import Change, DropChunks, DropInode, Limits, PutInode
from vfsd.tree.tree import Tree
from vfsd.turns import Turns

_log = logging.getLogger(__name__)

Plan: TypeAlias = Callable[[int], Change]
"""Plans a change for the time it is given (ns)."""

PlanSeeds: TypeAlias = Callable[[int], Planted]
"""Plans a seeding for the time it is given (ns)."""

Touched: TypeAlias = Callable[[], tuple[int, ...]]
"""Names the inodes that a change would touch, as things stand."""

OnSettled: TypeAlias = Callable[[Change], Coroutine[Any, Any, None]]
"""Told of a change that the kernel cannot know of: nobody asked for it through the mount, or was told it failed."""

_PAUSE_SECONDS = 1.0


class Changes:
    """Makes the changes of *tree*, kept by *store* under *claim*; without a claim there are none (EROFS).

    *memory* may refuse what would make the daemon too large. *nursery* carries on with what outlives a request.
    ``on_settled`` hears of changes that were stored after all, and of seedings; ``last_error`` is when (ns) the store
    last failed, and how. ``seeds`` is what of the tree is not the store's.
    """

    def __init__(self, tree: Tree, store: Store, claim: Claim | None, nursery: trio.Nursery, memory: MemoryCap) -> None:
        self.limits = Limits() if claim is None else claim.limits
        self.seeds = Seeds(tree)
        self._quota = Quota(tree, self.limits, memory, self.seeds.ledger)
        self.on_settled: OnSettled = _nobody_to_tell
        self.last_error: tuple[int, str] | None = None
        self._tree = tree
        self._store = store
        self._claim = claim
        self._nursery = nursery
        self._turns = Turns()
        self._behind: set[int] = set()

    async def make(self, touched: Touched, plan: Plan) -> Change:
        """Take the turn on what is *touched*, *plan*, commit, apply; return the change. Raises FsError, StoreError."""
        claim = self._writable_claim()
        inos = await self._take_turn(touched)
        try:
            now_ns = clock.now()
            step = self.seeds.translated(plan(now_ns), now_ns)
            demand = self._quota.reserve(step)
        except BaseException:
            self._turns.give_back(inos)
            raise
        await self._carry_out(claim, step, inos, demand)
        if step.unlinked:
            self._start(self.on_settled(Change(step.unlinked, grows=False)))
        return step.memory

    async def plant(self, plan: PlanSeeds) -> Planted:
        """Carry out a seeding that *plan* plans, in memory alone, and tell the kernel. Raises FsError, InDoubt.

        It needs no claim. Files that are emptied but not stored so yet stay that, be they hidden or not.
        """
        inos = await self._take_turn(lambda: touched(self._tree, plan(clock.now()).change))
        try:
            planted = plan(clock.now())
            self._quota.check_memory(planted.change)
            self._tree.apply(planted.change)
            self.seeds.planted(planted)
            self._behind.difference_update(op.ino for op in planted.change.ops if isinstance(op, DropInode))
        finally:
            self._turns.give_back(inos)
        if planted.change.ops:
            with trio.CancelScope(shield=True):  # the kernel is to know even if who asked has gone
                await self.on_settled(planted.change)
        return planted

    async def _carry_out(self, claim: Claim, step: Step, inos: tuple[int, ...], demand: Demand) -> None:
        """Commit and apply a planned *step*; turn and reserved room are given back, unless it is left in doubt."""
        try:
            if step.store.ops and not self._is_forgotten(inos):
                await self._commit(claim, step.store, inos)
            self._apply(step, inos)
        except InDoubt as doubt:
            self._turns.leave_in_doubt(inos, doubt)
            self._start(self._settle(doubt, step, inos, demand))
            raise
        except BaseException:
            self._end(inos, demand)
            raise
        self._end(inos, demand)

    def _end(self, inos: tuple[int, ...], demand: Demand) -> None:
        self._quota.give_back(demand)
        self._turns.give_back(inos)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Let *work* go on beside the requests. A bug in it is logged, and does not end the mount."""
        self._nursery.start_soon(_guarded, work)

    async def sync(self, ino: int) -> None:
        """Do what fsync of *ino* promises beyond what every change already has. Raises StoreError."""
        if self._claim is not None:
            await self.catch_up(ino)
            await self._noting_errors(self._store.sync())

    def retire(self) -> None:
        """Make no further change (EROFS), for all that is stored is about to go. What memory holds stays readable."""
        self._claim = None
        self._behind.clear()

    def _writable_claim(self) -> Claim:
        if self._claim is None:
            raise FsError(errno.EROFS)
        self._store.refuse_if_hopeless(self._claim)
        return self._claim

    async def _take_turn(self, touched: Touched) -> tuple[int, ...]:
        """Take the turn on what is *touched*; look again after a wait, for a name may mean another inode by then."""
        while True:
            inos = self.seeds.touched(touched())
            waited = await self._turns.take(inos)
            try:
                if not waited or set(self.seeds.touched(touched())) == set(inos):
                    return inos
            except FsError:
                self._turns.give_back(inos)
                raise
            self._turns.give_back(inos)

    def _is_forgotten(self, inos: tuple[int, ...]) -> bool:
        """Whether a change concerns just one inode, and that has lost its last name: it lives in memory only."""
        only = self._tree.inodes.get(inos[0])
        return len(inos) == 1 and only is not None and only.is_orphan

    async def _commit(self, claim: Claim, change: Change, inos: tuple[int, ...]) -> None:
        """Make *change* durable; files the store is behind with lose their old content in the same step."""
        truncations = tuple(DropChunks(ino, None) for ino in self._behind.intersection(inos))
        await self._noting_errors(self._store.commit(claim, Change((*truncations, *change.ops), change.grows)))

    async def _noting_errors(self, asking: Awaitable[None]) -> None:
        try:
            await asking
        except StoreError as error:
            self.last_error = (clock.now(), str(error))
            raise

    def _apply(self, step: Step, inos: tuple[int, ...]) -> None:
        """Take a stored change into memory: the store is no longer behind with what it touched."""
        self._tree.apply(step.memory)
        self.seeds.applied(step)
        if step.memory.ops and self._behind:
            self._behind.difference_update(inos)

    async def _settle(self, doubt: InDoubt, step: Step, inos: tuple[int, ...], demand: Demand) -> None:
        """Keep the turn on *inos* until it is known whether *step* was stored, and then let memory agree.

        Whoever caches is told before the turn ends: a change that was planned on what is cached would undo it in part.
        """
        try:
            if await doubt.settled():
                self._apply(step, inos)
                await self.on_settled(step.memory)
                _log.warning("a change that was answered with an error turned out to be stored: now it is visible")
        finally:
            self._end(inos, demand)

    # --- truncation on open

    async def truncate_on_open(self, ino: int) -> None:
        """Empty file *ino* in memory because it is opened with O_TRUNC. Errors: see :func:`plan_setattr`."""
        self._writable_claim()
        inos = await self._take_turn(lambda: (ino,))
        try:
            self._tree.apply(plan_setattr(self._tree, ino, NewAttributes(size=0), clock.now()))
            self.seeds.ledger.emptied(ino)
            if not self._is_forgotten(inos):
                self._behind.add(ino)
        finally:
            self._turns.give_back(inos)

    def is_behind(self, ino: int) -> bool:
        """Whether the store still has what file *ino* held before it was opened with O_TRUNC."""
        return ino in self._behind

    async def catch_up(self, ino: int) -> None:
        """Store the truncation of *ino*, if no change has taken it along. Raises StoreError."""
        if ino in self._behind:
            await self.make(lambda: (ino,), lambda _now_ns: self._as_it_is(ino))

    def _as_it_is(self, ino: int) -> Change:
        inode = self._tree.inodes.get(ino)
        if inode is None or ino not in self._behind:
            return Change((), grows=False)
        return Change((PutInode(ino, inode.attributes),), grows=False)

    def catch_up_soon(self, ino: int) -> None:
        """See to it that the truncation of *ino* is stored as soon as the store will take it."""
        self._start(self._catch_up_somehow(ino))

    async def _catch_up_somehow(self, ino: int) -> None:
        while ino in self._behind:
            try:
                await self.catch_up(ino)
            except Fenced as error:
                _log.warning("the truncation of inode %d will not be stored: %s", ino, error)
                return
            except StoreError as error:
                _log.info("the truncation of inode %d is not stored yet: %s", ino, error)
                await trio.sleep(_PAUSE_SECONDS)

    async def drain(self) -> None:
        """Store every truncation that is still to be stored, before the end. Raises the last StoreError."""
        failed: StoreError | None = None
        for ino in tuple(self._behind):
            try:
                await self.catch_up(ino)
            except StoreError as error:
                failed = error
        if failed is not None:
            raise failed


async def _guarded(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001 (a bug beside the requests must not end the mount)
        _log.exception("a task beside the requests failed by a bug")


async def _nobody_to_tell(_change: Change) -> None:
    """Stand in until a mount wants to hear of settled changes."""
