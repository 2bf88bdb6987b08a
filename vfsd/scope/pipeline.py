"""The one way a mounted scope changes: lock → plan → commit → apply → unlock → answer.

A change is planned against memory (a pure function, which may refuse it), made durable by the store, and only then
applied to memory. So no reader sees what could still be lost, and a failed change leaves memory and store as they were.
A change whose fate is unknown stays locked until the store has settled it.

Two kinds of change are applied to memory alone: the truncation by ``open(O_TRUNC)``, which the store gets with the next
change of the file (see :mod:`vfsd.scope.deferred`), and whatever the store must never get.

What else takes part in a change is a hook (:mod:`vfsd.scope.hooks`). The pipeline knows none of them.
"""

import errno
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import trio

from vfsd import clock
from vfsd.errors import FsError, InDoubt, StoreError
from vfsd.scope.background import BackgroundTasks
from vfsd.scope.hooks import NOTHING, Effects, Hook, KernelCache, Mutation, Plan, Touched, Usage
from vfsd.scope.inode_locks import InodeLocks
from vfsd.scope.quota import Quota
from vfsd.scope.stamps import stamp
from vfsd.store.base import Claim
from vfsd.tree.change import Change, DropEntry, Op, PutEntry
from vfsd.tree.tree import Tree

_log = logging.getLogger(__name__)

_LONGEST_WAIT_NS = 2_000_000
"""Longest wait until a time looks different. If it would be longer, the clock was set back."""

EffectsT = TypeVar("EffectsT", bound=Effects)


class _Drafted(NamedTuple):
    """A planned change, complete with what the hooks add. *inos* are locked for it."""

    change: Change
    now_ns: int
    inos: tuple[int, ...]


class _Accepted(NamedTuple):
    """A change that may be made: its effects, the inodes locked for it, the room reserved for it."""

    effects: Effects
    inos: tuple[int, ...]
    reserved: Usage | None


class Pipeline:
    """Makes the changes of *tree* under *claim*. Without a claim every change fails with EROFS.

    *hooks* take part in every change, in this order. *last_ns* is the time of the last change. *kernel* is told of
    changes that it did not ask for. *background* runs what outlives a request. ``last_error`` is when (ns) and how the
    store last failed.
    """

    def __init__(  # noqa: PLR0913, PLR0917 (the parts of a volume, built once and in one place)
        self,
        tree: Tree,
        claim: Claim | None,
        quota: Quota,
        hooks: Sequence[Hook],
        last_ns: int,
        kernel: KernelCache,
        background: BackgroundTasks,
    ) -> None:
        self.last_error: tuple[int, str] | None = None
        self._tree = tree
        self._claim = claim
        self._quota = quota
        self._hooks = hooks
        self._last_ns = last_ns
        self._waking = frozenset[bytes]().union(*(hook.wakes_on for hook in hooks))
        self._kernel = kernel
        self._background = background
        self._locks = InodeLocks()

    # --- changes that are stored

    async def change(self, touched: Touched, plan: Plan) -> Change:
        """Lock what is *touched*, *plan*, commit, apply. Return what memory took. Raises FsError, StoreError."""
        claim = self.writable_claim()
        accepted = await self._accept(touched, plan)
        further = await self._carry_out(claim, accepted)
        if accepted.effects.untold:
            self._background.start(self._kernel.forget(Change(accepted.effects.untold, grows=False)))
        for mutation in further:
            await self._change_further(mutation)
        return accepted.effects.memory

    def writable_claim(self) -> Claim:
        """Return the claim. Raises FsError (EROFS) if there is none, StoreError if it is known to be of no use."""
        if self._claim is None:
            raise FsError(errno.EROFS)
        self._claim.raise_if_unusable()
        return self._claim

    def retire(self) -> None:
        """Make no further change (EROFS). What memory holds stays readable."""
        self._claim = None

    async def _accept(self, touched: Touched, plan: Plan) -> _Accepted:
        """Lock and plan a change, find out what the store must get of it, and reserve its room."""
        drafted = await self._draft(touched, plan)
        try:
            effects = self._effects(drafted)
            reserved = self._quota.reserve(effects) if self._quota.is_bounded else None
            return _Accepted(effects, drafted.inos, reserved)
        except BaseException:
            self._locks.release(drafted.inos)
            raise

    async def _draft(self, touched: Touched, plan: Plan) -> _Drafted:
        """Lock what is *touched* and plan. Do it again with more locks if hooks add operations on other inodes.

        Do it again a little later if hooks find that its times could be taken for times that somebody has seen.
        """
        more: tuple[int, ...] = ()
        while True:
            inos = await self._locks.acquire(partial(self._touched, touched, more))
            try:
                now_ns = self._now()
                change = plan(now_ns)
                hooks = self._concerned(change)
                if not hooks:
                    return _Drafted(change, now_ns, inos)
                added = _additions(hooks, change, now_ns)
                more = _named(added)
                change = Change((*added, *change.ops), change.grows)
                later_ns = 0
                if set(more).issubset(inos):
                    later_ns = _later(hooks, change)
                    if not later_ns:
                        return _Drafted(change, now_ns, inos)
            except BaseException:
                self._locks.release(inos)
                raise
            self._locks.release(inos)
            if later_ns:
                await _until(later_ns)

    def _now(self) -> int:
        """Return the time (ns) of a change that is planned now: later than every time before it."""
        now_ns, last_ns = clock.now(), self._last_ns
        self._last_ns = now_ns if now_ns > last_ns else stamp(now_ns, last_ns)  # nearly always no call
        return self._last_ns

    def _touched(self, touched: Touched, more: tuple[int, ...]) -> tuple[int, ...]:
        """Return what is *touched*, and *more*, and what hooks touch because of that."""
        inos = (*touched(), *more)
        for hook in self._hooks:
            if hook.active:
                inos = (*inos, *hook.touched(inos))
        return inos

    def _concerned(self, change: Change) -> list[Hook]:
        """Return the hooks that must be asked about *change*: the active ones, and those that it wakes."""
        concerned, woken = [], False
        for op in change.ops:
            if isinstance(op, (PutEntry, DropEntry)) and op.name in self._waking:
                woken = True
        for hook in self._hooks:
            if hook.active or (woken and hook.wakes_on):
                concerned.append(hook)  # noqa: PERF401 (a comprehension is another call, and every change comes here)
        return concerned

    def _effects(self, drafted: _Drafted) -> Effects:
        """Return what a planned change does to memory and what to the store."""
        effects = Effects(drafted.change, drafted.change)
        for hook in self._hooks:
            if hook.active:
                effects = hook.effects(effects, drafted.inos, drafted.now_ns)
        return effects

    async def _carry_out(self, claim: Claim, accepted: _Accepted) -> list[Mutation]:
        """Commit and apply. Unlock and give back the reserved room, unless the change is left in doubt.

        Return the changes that must follow before the caller is answered.
        """
        try:
            if accepted.effects.store.ops and not self._is_orphan(accepted.inos):
                await self._commit(claim, accepted.effects.store)
            further = self._apply(accepted.effects, accepted.inos)
        except InDoubt as doubt:
            self._locks.leave_in_doubt(accepted.inos, doubt)
            self._background.start(self._settle(doubt, accepted))
            raise
        except BaseException:
            self._finish(accepted)
            raise
        self._finish(accepted)
        return further

    def _is_orphan(self, inos: tuple[int, ...]) -> bool:
        """Whether a change concerns one inode that has no name left: it lives in memory only."""
        only = self._tree.inodes.get(inos[0])
        return len(inos) == 1 and only is not None and not only.attributes.nlink

    async def _commit(self, claim: Claim, change: Change) -> None:
        try:
            await claim.commit(change)
        except StoreError as error:
            self.note_error(error)
            raise

    def note_error(self, error: StoreError) -> None:
        """Remember that the store failed."""
        self.last_error = (clock.now(), str(error))

    def _apply(self, effects: Effects, inos: tuple[int, ...]) -> list[Mutation]:
        """Let memory take *effects*, and the hooks record them. Return the changes that must follow."""
        is_plain = effects.store is effects.memory
        hooks = self._concerned(effects.memory) if is_plain else self._hooks
        for hook in hooks:
            hook.applying(effects)
        self._tree.apply(effects.memory)
        further = []
        for hook in hooks:
            mutation = hook.applied(effects, inos)
            if mutation is not None:
                further.append(mutation)
        return further

    def _finish(self, accepted: _Accepted) -> None:
        if accepted.reserved is not None:
            self._quota.give_back(accepted.reserved)
        self._locks.release(accepted.inos)

    async def _settle(self, doubt: InDoubt, accepted: _Accepted) -> None:
        """Keep the locks until it is known whether the change was stored, then let memory agree.

        The kernel is told before the locks are released: a change planned on what is cached would undo part of it.
        """
        further: list[Mutation] = []
        try:
            if await doubt.settled():
                further = self._apply(accepted.effects, accepted.inos)
                ops = (*accepted.effects.memory.ops, *accepted.effects.untold)
                await self._kernel.forget(Change(ops, grows=False))
                _log.warning("a change that was answered with an error turned out to be stored: now it is visible")
        finally:
            self._finish(accepted)
        for mutation in further:
            await self._change_further(mutation)

    async def _change_further(self, mutation: Mutation) -> None:
        """Make a change that follows from another; if the store fails, repeat it in the background."""
        making = partial(self.change, mutation.touched, mutation.plan)
        try:
            await making()
        except StoreError:
            self._background.insist(making, mutation.what)

    # --- changes of memory alone

    async def change_unstored(self, plan: Callable[[int], EffectsT]) -> EffectsT:
        """Apply to memory what *plan* plans for the time it is given (ns), and tell the kernel.

        The store gets nothing, and no claim is needed. Raises FsError, InDoubt.
        """
        inos = await self._locks.acquire(lambda: self._touched_by_plan(plan))
        try:
            effects = self._unstored(plan)
            while later_ns := _later(self._concerned(effects.memory), effects.memory):
                await _until(later_ns)
                effects = self._unstored(plan)
            self._quota.check_memory(effects.memory)
            self._apply(effects, inos)  # no follow-up is possible: nothing ran between planning and applying
        finally:
            self._locks.release(inos)
        with trio.CancelScope(shield=True):  # the kernel must know even if the caller has gone
            await self._kernel.forget(Change((*effects.memory.ops, *effects.untold), grows=False))
        return effects

    def _unstored(self, plan: Callable[[int], EffectsT]) -> EffectsT:
        now_ns = self._now()
        effects = plan(now_ns)
        added = _additions(self._concerned(effects.memory), effects.memory, now_ns)
        effects.memory = Change((*added, *effects.memory.ops), effects.memory.grows)
        return effects

    def _touched_by_plan(self, plan: Callable[[int], Effects]) -> tuple[int, ...]:
        named = _named(self._unstored(plan).memory.ops)
        present = tuple(ino for ino in named if ino in self._tree.inodes)
        return self._touched(lambda: present, ())

    async def truncate(self, ino: int, plan: Plan) -> bool:
        """Empty file *ino* in memory as *plan* says. Return whether the store must still get that. Raises FsError.

        Errors: ENOSPC if the store would have no room for what the file becomes.
        """
        self.writable_claim()
        drafted = await self._draft(lambda: (ino,), plan)
        try:
            self._quota.check(self._effects(drafted))
            self._apply(Effects(drafted.change, NOTHING), drafted.inos)  # no follow-up, as above
            return not self._is_orphan(drafted.inos)
        finally:
            self._locks.release(drafted.inos)


def _named(ops: Sequence[Op]) -> tuple[int, ...]:
    """Return the inodes that *ops* change, each once."""
    named = (op.parent if isinstance(op, (PutEntry, DropEntry)) else op.ino for op in ops)
    return tuple(dict.fromkeys(named))


def _additions(hooks: Sequence[Hook], change: Change, now_ns: int) -> tuple[Op, ...]:
    """Return what *hooks* add to *change*, which is planned for *now_ns*."""
    added: tuple[Op, ...] = ()
    for hook in hooks:
        added = (*added, *hook.additions(change, now_ns))
    return added


def _later(hooks: Sequence[Hook], change: Change) -> int:
    """Return the time (ns) at which *change* must be planned again. 0: *hooks* let it be made as it is."""
    return max((hook.later(change) for hook in hooks), default=0)


async def _until(time_ns: int) -> None:
    """Return at *time_ns*, which is near. Other requests go on; a timer would be too coarse for such a short wait."""
    while 0 < time_ns - clock.now() <= _LONGEST_WAIT_NS:
        await trio.lowlevel.checkpoint()
