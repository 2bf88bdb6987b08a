"""Committing a claimed scope's changes to Redis: in groups, each within its deadline, each with its own outcome.

A group is one transaction. Where the server refuses it, its members are tried one by one, so that what does not
fit cannot take others down with it; and on a full server a change that needs no room goes as a script, which
Redis lets through. It never answers a commit whose fate it does not know.
"""

from collections.abc import Sequence

from vfsd.errors import Fenced, StoreError, StoreFull, StoreReadOnly, StoreUnreachable
from vfsd.store.base import Claim
from vfsd.store.group import GroupCommit, Ticket
from vfsd.store.redis import scripts
from vfsd.store.redis.admin import RedisAdmin
from vfsd.store.redis.connection import FencedConnection
from vfsd.store.redis.errors import refusal
from vfsd.store.redis.resp import ConnectionLost, Reply, ReplyError, RespRequest
from vfsd.store.redis.transaction import Outcome, Verdict, commands, decode, encode, next_ino, watched_epoch
from vfsd.tree.change import Change, Chunk, own


class Committer:
    """The commits of *claim* to *server*, each within *timeout* seconds. ``line`` is what it is kept alive by."""

    def __init__(self, server: RedisAdmin, claim: Claim, timeout: float) -> None:
        self.line = FencedConnection(server, claim, timeout)
        self._scope = claim.scope
        self._group = GroupCommit(self._flush, timeout)

    @property
    def pending(self) -> int:
        """How many commits wait for the server."""
        return self._group.pending

    async def commit(self, change: Change) -> None:
        """See :meth:`vfsd.store.base.Store.commit`."""
        await self._group.commit(change)

    async def _flush(self, tickets: Sequence[Ticket]) -> None:
        try:
            await self._store(tickets, tickets[0].deadline)  # they came in that order
        except StoreError as error:
            for ticket in tickets:
                ticket.error = error

    async def _store(self, tickets: Sequence[Ticket], deadline: float) -> None:
        """Send *tickets* as one transaction, again if need be, until it is stored, refused or too late."""
        changes = [ticket.change for ticket in tickets]
        while True:
            link = await self.line.usable(deadline)
            seq = self.line.seq + 1
            request = encode(self.line.keys, changes, self._header(changes, seq))
            try:
                replies = await link.call(request, deadline, alone=self._group.pending == 1, meanwhile=own(changes))
            except ConnectionLost as lost:
                if await self.line.settle(lost, seq, changes, deadline):
                    return
                continue
            outcome = decode(replies)
            ours = self._conclude(outcome, seq, changes)
            if outcome.verdict is Verdict.STORED:
                return
            if outcome.verdict is Verdict.REFUSED and ours:
                error = refusal(self.line.label, outcome.why)
                if not self._may_pass(error):
                    await self._refused(error, tickets, deadline)
                    return

    def _may_pass(self, error: StoreError) -> bool:
        """Whether a refusal is for a moment only, or another server is master by now: connect anew, and ask again."""
        passing = isinstance(error, (StoreUnreachable, StoreReadOnly))
        if passing:
            self.line.drop(StoreUnreachable(str(error)))
        return passing

    def _header(self, changes: Sequence[Change], seq: int) -> list[bytes]:
        """Return the header fields that a transaction sets."""
        following = next_ino(changes, self.line.next_ino)
        counted = [b"next", b"%d" % following] if following > self.line.next_ino else []
        return [b"seq", b"%d" % seq, *counted]

    def _conclude(self, outcome: Outcome, seq: int, changes: Sequence[Change]) -> bool:
        """Take note of a verdict; return whether the scope is still ours. Raises Fenced on foreign data.

        Whatever the verdict, the header is watched anew since then: that holds only if the epoch is still ours.
        """
        if outcome.verdict is Verdict.TORN:
            raise self.line.lose(Fenced(f"scope {self._scope}: foreign data under its keys ({outcome.why})"))
        if outcome.verdict is Verdict.STORED:
            self.line.stored(seq, changes)
        return self._is_ours(outcome.epoch)

    def _is_ours(self, epoch: Reply) -> bool:
        """Whether *epoch* is the one we hold; if not, bringing the line up finds out whose the scope is."""
        ours: bool = epoch == self.line.epoch
        if not ours:
            self.line.drop(StoreUnreachable(f"the epoch of scope {self._scope} has changed"))
        return ours

    async def _refused(self, error: StoreError, tickets: Sequence[Ticket], deadline: float) -> None:
        """Nothing of a group was stored: see which of its members the server will take."""
        if len(tickets) > 1:
            for ticket in tickets:
                await self._store_alone(ticket, deadline)
        elif isinstance(error, StoreFull) and not tickets[0].change.grows:
            await self._shrink(tickets[0], deadline)
        else:
            raise error

    async def _store_alone(self, ticket: Ticket, deadline: float) -> None:
        try:
            await self._store([ticket], deadline)
        except StoreError as error:
            ticket.error = error

    async def _shrink(self, ticket: Ticket, deadline: float) -> None:
        """Store a change that needs no room on a server that is full."""
        link, seq = await self.line.usable(deadline), self.line.seq + 1
        try:
            replies = await link.call(self._shrinking(ticket.change, seq), deadline)
        except ConnectionLost as lost:
            if not await self.line.settle(lost, seq, [ticket.change], deadline):
                await self._store([ticket], deadline)
            return
        answer, ours = replies[0], self._is_ours(watched_epoch(replies))
        if not isinstance(answer, ReplyError) and answer[0] == b"stored":
            self.line.stored(seq, [ticket.change])
            return
        if isinstance(answer, ReplyError) and ours:
            error = refusal(self.line.label, str(answer))
            if not self._may_pass(error):
                raise error
        await self._store([ticket], deadline)

    def _shrinking(self, change: Change, seq: int) -> RespRequest:
        """Return *change* as a script's call. The script touches the watched header, so the watch is begun anew."""
        keys = self.line.keys
        words: list[Chunk] = [b"EVAL", scripts.SHRINK, b"1", keys.scope, self.line.epoch]
        counted: list[Chunk] = [b"HSET", keys.scope, b"seq", b"%d" % seq]
        for command in (*commands(keys, change.ops), counted):
            words += (b"%d" % len(command), *command)
        request = RespRequest()
        request.add(*words)
        request.add(b"UNWATCH")
        request.add(b"WATCH", keys.scope)
        request.add(b"HGET", keys.scope, b"epoch")
        return request
