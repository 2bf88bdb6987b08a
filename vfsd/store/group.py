"""Group commit: changes that wait for the store at the same time are made durable together.

The first commit becomes the leader and flushes its own change. Commits that come during the flush wait. After the
flush, the first of them becomes the leader of the next group, which takes all that wait, up to a size limit. So a lone
commit costs no task switch, and many commits at once share one round trip. Each commit gets its own result.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import trio

from vfsd.errors import StoreError
from vfsd.tree.change import Change, content_size

GROUP_BYTES = 4 << 20
"""The most content (bytes) in one group. A single change may have more."""


class Ticket:
    """One change that is being committed. *deadline* (trio's clock) is when its caller must have an answer.

    The flush sets *error*; None means that the change is stored. *wake* is set when the ticket has its answer, or when
    it becomes the leader. A ticket that never waited has no *wake*.
    """

    __slots__ = ("change", "deadline", "error", "wake")

    def __init__(self, change: Change, deadline: float) -> None:
        self.change = change
        self.deadline = deadline
        self.error: StoreError | None = None
        self.wake: trio.Event | None = None


Flush: TypeAlias = Callable[[Sequence[Ticket]], Awaitable[None]]
"""Stores the changes of the tickets, and sets ``error`` of each ticket that failed. It must not raise."""


class GroupCommit:
    """Takes changes one by one, and passes them to *flush* in groups, one group at a time.

    Each change must be answered within *timeout* seconds, including the time that it waits for its group. ``pending``
    is the number of changes without an answer.
    """

    def __init__(self, flush: Flush, timeout: float) -> None:
        self._flush = flush
        self._timeout = timeout
        self._waiting: list[Ticket] = []
        self._leading = False
        self.pending = 0

    async def commit(self, change: Change) -> None:
        """Store *change*. Raises its StoreError if it is not stored."""
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
        """Wait until a leader has flushed *ticket*, or until it is the next leader: then flush the next group."""
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
        """Remove *ticket* from the queue if it is still there. If it was the next leader, wake the one after it."""
        if ticket in self._waiting:
            was_first = self._waiting[0] is ticket
            self._waiting.remove(ticket)
            if was_first and ticket.wake is not None and ticket.wake.is_set():
                self._wake_next_leader()

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
            self._wake_next_leader()

    def _wake_next_leader(self) -> None:
        """Make the first waiting ticket the leader, if any ticket waits."""
        self._leading = bool(self._waiting)
        if self._waiting:
            self._waiting[0].wake.set()  # type: ignore[union-attr]  # every waiting ticket has a wake event

    def _next_group(self) -> list[Ticket]:
        """Take the next group from the waiting tickets, and return it."""
        size = count = 0
        for ticket in self._waiting:
            size += content_size((ticket.change,))
            if count and size > GROUP_BYTES:
                break
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group


def _fail(group: Sequence[Ticket], cause: BaseException) -> None:
    """Set an error on all tickets of *group*, whose flush was interrupted by a bug or a cancelled leader.

    This is the one error besides InDoubt after which a change may be stored, because nobody can settle it any more: it
    happens when the daemon is forced to end, or has a bug.
    """
    for ticket in group:
        if ticket.error is None:
            ticket.error = StoreError(f"a commit was interrupted, and may or may not be stored: {cause!r}")
