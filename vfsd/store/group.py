"""Group commit: changes that wait for the store at the same moment are made durable together.

The first to come leads: it hands its change, and whatever has gathered by then, to *flush*; those that come
meanwhile wait, and one of them leads the next group. So a lone commit costs no task switch, and a crowd costs
one round trip. Each member learns its own outcome.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import trio

from vfsd.errors import StoreError
from vfsd.tree.change import Change, content_size

GROUP_BYTES = 4 << 20
"""No more content than this (bytes) goes into one group, unless a single change has more."""


class Ticket:
    """One change on its way, to be answered by *deadline* (trio's clock).

    *error* is set by whoever flushes it; None means that it is stored.
    """

    __slots__ = ("change", "deadline", "error", "wake")

    def __init__(self, change: Change, deadline: float) -> None:
        self.change = change
        self.deadline = deadline
        self.error: StoreError | None = None
        self.wake: trio.Event | None = None


Flush: TypeAlias = Callable[[Sequence[Ticket]], Awaitable[None]]
"""Stores the changes of its tickets and sets the error of each that failed. Must not raise."""


class GroupCommit:
    """Takes changes one by one and gives them to *flush* in groups, one group at a time.

    Each is to be answered within *timeout* seconds, its wait for a place in a group included.
    """

    def __init__(self, flush: Flush, timeout: float) -> None:
        self._flush = flush
        self._timeout = timeout
        self._waiting: list[Ticket] = []
        self._leading = False
        self.pending = 0

    async def commit(self, change: Change) -> None:
        """Return when *change* is stored; raise its StoreError if it is not."""
        ticket = Ticket(change, trio.current_time() + self._timeout)
        self.pending += 1
        try:
            if self._leading:
                await self._follow(ticket)
            else:
                await self._lead([ticket])
        finally:
            self.pending -= 1
        if ticket.error is not None:
            raise ticket.error.with_traceback(None)

    async def _follow(self, ticket: Ticket) -> None:
        """Wait until a leader has stored *ticket*, or has made it the next leader."""
        ticket.wake = trio.Event()
        self._waiting.append(ticket)
        try:
            await ticket.wake.wait()
        except trio.Cancelled:
            self._give_up(ticket)
            raise
        if self._waiting and self._waiting[0] is ticket:
            await self._lead(self._next_group())

    def _give_up(self, ticket: Ticket) -> None:
        """Take *ticket* back, unless it is on its way already; if it was to lead, the next one does."""
        if ticket in self._waiting:
            was_first = self._waiting[0] is ticket
            self._waiting.remove(ticket)
            if was_first and ticket.wake is not None and ticket.wake.is_set():
                self._pass_on()

    async def _lead(self, group: Sequence[Ticket]) -> None:
        self._leading = True
        try:
            await self._flush(group)
        except BaseException as error:
            _fail(group, error)
            raise
        finally:
            for ticket in group:
                if ticket.wake is not None:
                    ticket.wake.set()
            self._pass_on()

    def _pass_on(self) -> None:
        """Let the first of those waiting lead, if there is one."""
        self._leading = bool(self._waiting)
        if self._waiting:
            self._waiting[0].wake.set()  # type: ignore[union-attr]  # all that wait have one

    def _next_group(self) -> list[Ticket]:
        """Take from those waiting as many as make one group."""
        size = count = 0
        for ticket in self._waiting:
            size += content_size((ticket.change,))
            if count and size > GROUP_BYTES:
                break
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group


def _fail(group: Sequence[Ticket], cause: BaseException) -> None:
    """Tell all members of *group* that flushing it broke off: a bug, or a cancelled leader. None counts as stored."""
    for ticket in group:
        if ticket.error is None:
            ticket.error = StoreError(f"a commit broke off, and what became of it is not known: {cause!r}")
