"""The one way a mounted tree changes: plan → commit → apply, a turn at a time for each inode.

A change is planned against memory (pure, may refuse), made durable by the store, and only then applied, so that no
reader sees what could still be lost, and a failure leaves memory and store as they were. A change whose fate is
unknown keeps its turn until the store has settled it.

Where directories' times must move with what lies far below them (see :mod:`vfsd.skills.times`) they are part of the
change, and of its turn.

The one exception is the truncation by ``open(O_TRUNC)``: memory has it at once, the store with the next change of
that file, or when it is closed. So a rewrite by open, write, close is one commit, and a crash in between leaves the
old file.
"""

import errno
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import trio

from vfsd import clock
from vfsd.beside import Beside
from vfsd.config import DirectoryMtime
from vfsd.errors import FsError, InDoubt, StoreError
from vfsd.memory import MemoryCap
from vfsd.quota import Demand, Quota
from vfsd.skills.times import DirectoryTimes
from vfsd.store.base import Claim, Store
from vfsd.tree.attributes import NewAttributes, plan_setattr
from vfsd.tree.change import Change, DropChunks, Limits, PutInode
from vfsd.tree.tree import Tree
from vfsd.turns import Turns

_log = logging.getLogger(__name__)

Plan: TypeAlias = Callable[[int], Change]
"""Plans a change for the time it is given (ns)."""

Touched: TypeAlias = Callable[[], tuple[int, ...]]
"""Names the inodes that a change would touch, as things stand."""

OnSettled: TypeAlias = Callable[[Change], Awaitable[None]]
"""Told of a change that turned out to be stored after its caller was told that it failed."""

OnMoved: TypeAlias = Callable[[tuple[int, ...]], None]
"""Told, before the caller is answered, of directories with skills in or below them whose times a change has moved."""


class _Planned(NamedTuple):
    """A change that is planned: whose turn it holds, which directories' times were added to it, the room it takes."""

    change: Change
    inos: tuple[int, ...]
    moved: tuple[int, ...]
    demand: Demand


class Changes:
    """Makes the changes of *tree*, kept by *store* under *claim*; without a claim there are none (EROFS).

    *memory* may refuse what would make the daemon too large. *nursery* carries on with what outlives a request.
    ``on_settled`` hears of changes that were stored after all, ``on_moved`` of directories' times, moved as ``times``
    decides; ``last_error`` is when (ns) the store last failed, and how.
    """

    def __init__(self, tree: Tree, store: Store, claim: Claim | None, nursery: trio.Nursery, memory: MemoryCap) -> None:
        self.limits = Limits() if claim is None else claim.limits
        self._quota = Quota(tree, self.limits, memory)
        self.times = DirectoryTimes(tree, DirectoryMtime.SKILLS)
        self.on_settled: OnSettled = _nobody_to_tell
        self.on_moved: OnMoved = _nobody_to_notify
        self.last_error: tuple[int, str] | None = None
        self._tree = tree
        self._store = store
        self._claim = claim
        self._beside = Beside(nursery)
        self._turns = Turns()
        self._behind: set[int] = set()
        self._owed: set[int] = set()
        """Directories whose times moved in memory when a file below them was opened with O_TRUNC."""

    async def make(self, touched: Touched, plan: Plan) -> Change:
        """Take the turn on what is *touched*, *plan*, commit, apply; return the change. Raises FsError, StoreError."""
        claim = self._writable_claim()
        planned = await self._planned(touched, plan)
        seen = await self._carry_out(claim, planned)
        if seen:
            await self._move_seen(seen)
        return planned.change

    async def _planned(self, touched: Touched, plan: Plan) -> _Planned:
        """Take the turn on what is *touched* and plan; again with that of the directories whose times must move too."""
        moving: tuple[int, ...] = ()
        while True:
            inos = await self._take_turn(partial(_all_of, touched, moving) if moving else touched)
            try:
                now_ns = clock.now()
                change = plan(now_ns)
                moving = self._due(change)
                if set(moving).issubset(inos):
                    change = self.times.moving(change, moving, now_ns) if moving else change
                    return _Planned(change, inos, moving, self._quota.reserve(change))
            except BaseException:
                self._turns.give_back(inos)
                raise
            self._turns.give_back(inos)

    def _due(self, change: Change) -> tuple[int, ...]:
        """Return the directories above *change* whose times must move with it, but for those it moves anyway."""
        above = self.times.above(change)
        if not above:
            return ()
        moved = {op.ino for op in change.ops if isinstance(op, PutInode)}
        due = {*self.times.seen(above), *self._owed.intersection(above)}
        return tuple(due - moved)

    async def _carry_out(self, claim: Claim, planned: _Planned) -> tuple[int, ...]:
        """Commit and apply what is *planned*; turn and reserved room are given back, unless it is left in doubt.

        Returns what :meth:`_apply` does.
        """
        try:
            if planned.change.ops and not self._is_forgotten(planned.inos):
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

    def _end(self, planned: _Planned) -> None:
        self._quota.give_back(planned.demand)
        self._turns.give_back(planned.inos)

    async def sync(self, ino: int) -> None:
        """Do what fsync of *ino* promises beyond what every change already has. Raises StoreError."""
        if self._claim is not None:
            await self.catch_up(ino)
            await self._noting_errors(self._store.sync())

    def retire(self) -> None:
        """Make no further change (EROFS), for all that is stored is about to go. What memory holds stays readable."""
        self._claim = None
        self._behind.clear()
        self._owed.clear()

    def _writable_claim(self) -> Claim:
        if self._claim is None:
            raise FsError(errno.EROFS)
        self._store.refuse_if_hopeless(self._claim)
        return self._claim

    async def _take_turn(self, touched: Touched) -> tuple[int, ...]:
        """Take the turn on what is *touched*; look again after a wait, for a name may mean another inode by then."""
        while True:
            inos = touched()
            waited = await self._turns.take(inos)
            try:
                if not waited or set(touched()) == set(inos):
                    return inos
            except FsError:
                self._turns.give_back(inos)
                raise
            self._turns.give_back(inos)

    def _is_forgotten(self, inos: tuple[int, ...]) -> bool:
        """Whether a change concerns just one inode, and that has lost its last name: it lives in memory only."""
        only = self._tree.inodes.get(inos[0])
        return len(inos) == 1 and only is not None and only.is_orphan

    async def _commit(self, claim: Claim, planned: _Planned) -> None:
        """Make a change durable; files the store is behind with lose their old content in the same step."""
        change = planned.change
        truncations = tuple(DropChunks(ino, None) for ino in self._behind.intersection(planned.inos))
        await self._noting_errors(self._store.commit(claim, Change((*truncations, *change.ops), change.grows)))

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
        change = planned.change
        above = self.times.above(change)
        moved = self.times.moved(change, above)
        self._tree.apply(change)
        if change.ops and self._behind:
            self._behind.difference_update(planned.inos)
        if moved:
            self._owed.difference_update(moved)
            self.on_moved(moved)
        return self.times.seen(above) if above else ()

    async def _move_seen(self, inos: tuple[int, ...]) -> None:
        """Move the times of directories that were seen while something below them changed; insist, if that fails."""
        try:
            await self._move(inos)
        except StoreError:
            self._beside.insist(partial(self._move, inos), "new times of directories")

    async def _move(self, inos: tuple[int, ...]) -> None:
        def plan(now_ns: int) -> Change:
            return self.times.moving(Change((), grows=False), self.times.seen(inos), now_ns)

        await self.make(lambda: self.times.seen(inos), plan)

    async def _settle(self, doubt: InDoubt, planned: _Planned) -> None:
        """Keep the turn until it is known whether what is *planned* was stored, and then let memory agree.

        Whoever caches is told before the turn ends: a change that was planned on what is cached would undo it in part.
        """
        seen: tuple[int, ...] = ()
        try:
            if await doubt.settled():
                seen = self._apply(planned)
                await self.on_settled(planned.change)
                _log.warning("a change that was answered with an error turned out to be stored: now it is visible")
        finally:
            self._end(planned)
        if seen:
            await self._move_seen(seen)

    # --- truncation on open

    async def truncate_on_open(self, ino: int) -> None:
        """Empty file *ino* in memory because it is opened with O_TRUNC. Errors: see :func:`plan_setattr`."""
        self._writable_claim()
        planned = await self._planned(
            lambda: (ino,), lambda now_ns: plan_setattr(self._tree, ino, NewAttributes(size=0), now_ns)
        )
        try:
            self._apply(planned)
            if not self._is_forgotten(planned.inos):
                self._behind.add(ino)
                self._owed.update(planned.moved)
        finally:
            self._end(planned)

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
        return Change((PutInode(ino, inode.attributes), DropChunks(ino, None)), grows=False)

    def catch_up_soon(self, ino: int) -> None:
        """See to it that the truncation of *ino* is stored as soon as the store will take it."""
        self._beside.insist(partial(self.catch_up, ino), f"the truncation of inode {ino}")

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


async def _nobody_to_tell(_change: Change) -> None:
    """Stand in until a mount wants to hear of settled changes."""


def _nobody_to_notify(_inos: tuple[int, ...]) -> None:
    """Stand in until there is a mount, whose kernel caches."""


def _all_of(touched: Touched, more: tuple[int, ...]) -> tuple[int, ...]:
    return (*touched(), *more)
