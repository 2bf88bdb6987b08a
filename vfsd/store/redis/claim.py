"""The claim on a scope in Redis: its changes are committed in groups, and each gets its own result.

A group is one transaction. If the server refuses a group, its members are tried one by one, so that a change that does
not fit fails alone. On a full server a change that needs no memory is sent as a script, because Redis accepts that.

Every transaction has a number, ``seq``. A transaction without an answer is *in doubt* until the connection is up again:
then the header says which number was stored last. A server may come back without commits that it acknowledged (an
append-only file that is flushed every second, a failover). So the last transactions are remembered, and stored again
then. If the result is unknown, the caller gets InDoubt: never success, never a plain failure.
"""

import logging
from collections import deque
from collections.abc import Sequence

import trio

from vfsd.errors import Fenced, InDoubt, StoreError, StoreFull, StoreReadOnly, StoreUnreachable
from vfsd.store.base import Claim, Claimed, Fsync, StoreOptions
from vfsd.store.group import GroupCommit, Ticket
from vfsd.store.lease import clock
from vfsd.store.redis import scripts
from vfsd.store.redis.admin import RedisAdmin
from vfsd.store.redis.connection import FencedConnection
from vfsd.store.redis.durability import DurabilityWait
from vfsd.store.redis.errors import refusal
from vfsd.store.redis.keys import SCOPES, Keys
from vfsd.store.redis.leftovers import SWEEP, Leftovers, is_large
from vfsd.store.redis.resp import ConnectionLost, ReplyError, RespConnection, RespRequest
from vfsd.store.redis.transaction import (
    ExecResult,
    Outcome,
    Watched,
    add_watch,
    commands,
    decode,
    encode,
    next_ino,
    watched,
)
from vfsd.tree.change import Change, Chunk, DropChunks, copy_views

_log = logging.getLogger(__name__)

_TRANSACTIONS = 4096
_BYTES = 32 << 20
"""The most that is remembered: much more than a second of a busy mount. The chunks are shared with the tree."""

_SWEEP_AGAIN_AFTER = 1.0
"""Seconds between two attempts to delete leftovers while the store refuses or is away."""


class UnansweredTransaction(InDoubt):
    """A transaction without an answer. *stored* is valid once *resolved* is set."""

    def __init__(self, message: str, seq: int, changes: Sequence[Change]) -> None:
        super().__init__(message)
        self.seq = seq
        self.changes = changes
        self.stored = False
        self.resolved = trio.Event()

    async def settled(self) -> bool:
        """See :meth:`InDoubt.settled`."""
        await self.resolved.wait()
        return self.stored


class _Remembered:
    """Transactions by number, the oldest forgotten first."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, Sequence[Change], int]] = deque()
        self._bytes = 0

    def add(self, seq: int, changes: Sequence[Change], size: int) -> None:
        """Remember transaction *seq*, the successor of the last one, which sent *size* bytes."""
        self._kept.append((seq, changes, size))
        self._bytes += size
        while len(self._kept) > _TRANSACTIONS or self._bytes > _BYTES:
            self._bytes -= self._kept.popleft()[2]

    def after(self, seq: int) -> list[tuple[int, Sequence[Change]]] | None:
        """Return the transactions that followed *seq*, in order; None if some are forgotten."""
        missing = [(number, changes) for number, changes, _ in self._kept if number > seq]
        return missing if missing and missing[0][0] == seq + 1 else None


class RedisClaim(Claim):
    """The claim on a scope of *admin*'s server. Each commit takes at most ``options.timeout`` seconds."""

    def __init__(self, admin: RedisAdmin, claimed: Claimed, options: StoreOptions) -> None:
        super().__init__(claimed)
        self._admin = admin
        self._timeout = options.timeout
        self._group = GroupCommit(self._flush, options.timeout)
        self._seq = 0
        self._next_ino = 0
        self._watched: Watched | None = None
        self._remembered = _Remembered()
        self._leftovers = Leftovers()
        self._doubt: UnansweredTransaction | None = None
        self._connection = FencedConnection(admin, self.scope, self.owner.token, options.timeout, self)
        waits = options.fsync != Fsync()
        self._durability = DurabilityWait(admin, self._connection, options.fsync, self._timeout) if waits else None

    @property
    def pending(self) -> int:
        """How many commits wait for the server."""
        return self._group.pending

    async def connect(self) -> None:
        """Bring the connection up for the first time. Raises StoreUnreachable, StoreRefused, Fenced."""
        await self._connection.bring_up()

    async def keep(self) -> None:
        """See :meth:`Claim.keep`."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._sweep)
            await self._connection.keep()
            nursery.cancel_scope.cancel()

    async def _sweep(self) -> None:
        """Delete leftovers, a slice at a time, whenever there are some."""
        while True:
            await self._leftovers.due.wait()
            if not self._leftovers.pending:
                self._leftovers.due = trio.Event()
                continue
            try:
                await self._group.commit(SWEEP)
            except StoreError as error:
                _log.info("could not delete leftovers of scope %s: %s", self.scope, error)
                await trio.sleep(_SWEEP_AGAIN_AFTER)

    async def release(self) -> None:
        """See :meth:`Claim.release`."""
        keys = Keys(self.scope)
        await self._end(scripts.RELEASE, (keys.scope, keys.lease), self.owner.token)

    async def undo(self) -> None:
        """See :meth:`Claim.undo`."""
        keys = Keys(self.scope)
        everything = (keys.scope, keys.lease, SCOPES, keys.inodes, keys.entries, keys.leftovers)
        await self._end(scripts.UNDO, everything, self.owner.token, self.scope)

    async def _end(self, script: bytes, keys: tuple[bytes, ...], *arguments: str) -> None:
        await trio.to_thread.run_sync(lambda: self._admin.script(script, keys, *arguments), abandon_on_cancel=True)

    async def sync(self) -> None:
        """Wait for as many replicas, or for the server's own disk, as the operator asked for."""
        if self._durability is not None:
            await self._durability.confirm()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    # --- committing

    def raise_if_unusable(self) -> None:
        """See :meth:`Claim.raise_if_unusable`."""
        if self._connection.link is None:
            self._connection.raise_if_unusable()

    async def commit(self, change: Change) -> None:
        """See :meth:`Claim.commit`."""
        for op in change.ops:
            if type(op) is DropChunks and is_large(op):  # the type alone rules out nearly all: no call for them
                await self._commit_large(change)
                return
        await self._group.commit(change)

    async def _commit_large(self, change: Change) -> None:
        self._leftovers.large += 1
        try:
            await self._group.commit(change)
        finally:
            self._leftovers.large -= 1

    def _resolved(self, tickets: Sequence[Ticket]) -> list[Change]:
        """Return what one transaction must store for *tickets* at this moment."""
        return self._leftovers.resolve(ticket.change for ticket in tickets)

    async def _flush(self, tickets: Sequence[Ticket]) -> None:
        try:
            await self._store(tickets, tickets[0].deadline)  # the first to come has the earliest deadline
        except StoreError as error:
            for ticket in tickets:
                ticket.error = error

    async def _store(self, tickets: Sequence[Ticket], deadline: float) -> None:
        """Send *tickets* as one transaction, again if necessary, until it is stored, refused or too late."""
        while True:
            link = self._connection.link or await self._connection.usable(deadline)
            if clock() > self._connection.lease.ends:
                await self._connection.claim_again(deadline)
                continue
            changes = [ticket.change for ticket in tickets]
            if self._leftovers.pending or self._leftovers.large:
                changes = self._resolved(tickets)
            seq, following = self._seq + 1, next_ino(changes, self._next_ino)
            request, content = encode(self._connection.keys, changes, self._header(seq, following))
            meanwhile = copy_views(changes) if request.has_large_values else ()
            try:
                replies = await link.call(request, deadline, alone=self._group.pending == 1, meanwhile=meanwhile)
            except ConnectionLost as lost:
                if await self._settle(lost, seq, changes, deadline):
                    return
                continue
            outcome = decode(replies, content)
            if outcome.result is ExecResult.STORED:
                self._note_stored(seq, changes, following, request.size)
            ours = self._is_ours(outcome)
            if outcome.result is ExecResult.STORED:
                return
            if outcome.result is ExecResult.REFUSED and ours:
                error = refusal(self._connection.label, outcome.why)
                if not self._may_pass(error):
                    await self._refused(error, tickets, deadline)
                    return

    def _header(self, seq: int, following: int) -> list[bytes]:
        """Return the header fields that transaction *seq* sets; *following* is the next inode number after it."""
        if following > self._next_ino:
            return [b"seq", b"%d" % seq, b"next", b"%d" % following]
        return [b"seq", b"%d" % seq]

    def _note_stored(self, seq: int, changes: Sequence[Change], following: int, size: int) -> None:
        """Record that transaction *seq* of *size* bytes has stored *changes*."""
        self._seq = seq
        self._next_ino = following
        self._remembered.add(seq, changes, size)
        if self._leftovers.pending or self._leftovers.large:
            self._leftovers.applied(changes)

    def _is_ours(self, outcome: Outcome) -> bool:
        """Whether the scope is still ours. Raises Fenced if another program has changed the scope's keys.

        Whatever the result, the scope is watched again, but that protects us only if the epoch in it is still ours.
        If it is not, bringing the connection up finds out whose the scope is.
        """
        if outcome.result is ExecResult.PARTIAL:
            raise self._lose_changed(outcome.why)
        return self._holds(outcome.watched, stored=outcome.result is ExecResult.STORED)

    def _holds(self, now: Watched, *, stored: bool) -> bool:
        """Whether the epoch in *now* is ours. Raises Fenced if records are missing and *stored* does not explain it."""
        if now.epoch != self._connection.epoch:
            self._connection.drop(StoreUnreachable(f"the epoch of scope {self.scope} has changed"))
            return False
        if not stored:
            self._raise_if_changed(now)
        self._watched = now
        return True

    def _raise_if_changed(self, now: Watched) -> None:
        """Raise Fenced, for good, if there are other numbers of records than after the last transaction."""
        known, keys = self._watched, self._connection.keys
        if known is None or known[1:] == now[1:]:
            return
        numbers = ((keys.inodes, known.inodes, now.inodes), (keys.entries, known.entries, now.entries))
        changed = [f"{key.decode()} had {had} fields and has {has}" for key, had, has in numbers if had != has]
        raise self._lose_changed(", ".join(changed))

    def _lose_changed(self, how: str) -> Fenced:
        """Give the scope up for good because its keys are not what was stored, and return the reason."""
        what = f"another program has changed scope {self.scope} in the store {self._connection.label} ({how})"
        return self._connection.lose(Fenced(f"{what}: copy what you need from this mount before you unmount it"))

    # --- refusals

    def _may_pass(self, error: StoreError) -> bool:
        """Whether a refusal is temporary, or another server is the master by now: then connect again, and try again."""
        passing = isinstance(error, (StoreUnreachable, StoreReadOnly))
        if passing:
            self._connection.drop(StoreUnreachable(str(error)))
        return passing

    async def _refused(self, error: StoreError, tickets: Sequence[Ticket], deadline: float) -> None:
        """Try the members of a refused group one by one, or raise *error* for a single change."""
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
        """Store a change that needs no memory on a full server."""
        link, seq = await self._connection.usable(deadline), self._seq + 1
        (change,) = self._resolved([ticket])
        request = self._shrinking(change, seq)
        try:
            replies = await link.call(request, deadline)
        except ConnectionLost as lost:
            if not await self._settle(lost, seq, [change], deadline):
                await self._store([ticket], deadline)
            return
        answer = replies[0]
        stored = not isinstance(answer, ReplyError) and answer[0] == b"stored"
        if stored:
            self._note_stored(seq, [change], next_ino([change], self._next_ino), request.size)
        ours = self._holds(watched(replies), stored=stored)
        if stored:
            return
        if isinstance(answer, ReplyError) and ours:
            error = refusal(self._connection.label, str(answer))
            if not self._may_pass(error):
                raise error
        await self._store([ticket], deadline)

    def _shrinking(self, change: Change, seq: int) -> RespRequest:
        """Return *change* as a script call. The script writes to watched keys, so they must be watched again.

        No WATCH protects a script: so it is told how many inodes and entries it must find.
        """
        keys, known = self._connection.keys, self._watched
        assert known is not None, "a transaction was refused before this"
        words: list[Chunk] = [b"EVAL", scripts.SHRINK, b"3", keys.scope, keys.inodes, keys.entries]
        words += (self._connection.epoch, str(known.inodes).encode(), str(known.entries).encode())
        counted: list[Chunk] = [b"HSET", keys.scope, b"seq", b"%d" % seq]
        for command in (*(command.words for command in commands(keys, change.ops)), counted):
            words += (b"%d" % len(command), *command)
        request = RespRequest()
        request.add(*words)
        request.add(b"UNWATCH")
        add_watch(request, keys)
        return request

    # --- unanswered commits, and commits that a server has lost

    async def _settle(self, lost: ConnectionLost, seq: int, changes: Sequence[Change], deadline: float) -> bool:
        """Return whether transaction *seq* of *changes*, sent over a link that broke, was stored.

        Raises InDoubt at *deadline*, or if the scope is lost before that: then the result stays unknown.
        """
        label = self._connection.label
        self._doubt = doubt = UnansweredTransaction(f"lost the store {label} during a commit: {lost}", seq, changes)
        _log.warning("%s", doubt)
        self._connection.drop(doubt)
        if self._connection.is_lost:  # no other connection will find out
            self.abandon()
        with trio.move_on_at(deadline):
            stored = await doubt.settled()
            if self._connection.is_lost:
                raise doubt
            return stored
        self._connection.drop_overdue(deadline)
        raise doubt

    async def recover(self, link: RespConnection, seq: int, next_ino: int, now: Watched) -> None:
        """See :class:`~vfsd.store.redis.connection.Recovery`."""
        if seq == self._seq:  # nothing was lost, and nothing stored without an answer: the records must be as we know
            self._raise_if_changed(now)
        self._watched = now
        self._next_ino = max(self._next_ino, next_ino)
        self._resolve_doubt(seq)
        if seq < self._seq:
            await self._store_again(link, seq)
        self._seq = max(self._seq, seq)
        self._leftovers.pending = await self._connection.notes(link)

    def abandon(self) -> None:
        """See :class:`~vfsd.store.redis.connection.Recovery`."""
        self._resolve_doubt(self._seq)

    def _resolve_doubt(self, seq: int) -> None:
        """Settle what is in doubt. *seq* is the number of the last transaction that the server has."""
        doubt, self._doubt = self._doubt, None
        if doubt is not None:
            doubt.stored = seq >= doubt.seq
            if doubt.stored:
                following = next_ino(doubt.changes, self._next_ino)
                size = encode(self._connection.keys, doubt.changes, ()).request.size
                self._note_stored(doubt.seq, doubt.changes, following, size)
            doubt.resolved.set()

    async def _store_again(self, link: RespConnection, seq: int) -> None:
        """Store the transactions after *seq* again: the server acknowledged them and has come back without them."""
        label, missing = self._connection.label, self._remembered.after(seq)
        if missing is None:
            lost = self._seq - seq
            raise self._connection.lose(
                Fenced(
                    f"the store {label} has lost {lost} acknowledged commits of scope {self.scope},"
                    " more than are remembered here: copy what you need from this mount"
                )
            )
        for number, changes in missing:
            header = (b"seq", b"%d" % number, b"next", b"%d" % self._next_ino)
            deadline = trio.current_time() + self._timeout
            request, content = encode(self._connection.keys, changes, header)
            outcome = decode(await link.call(request, deadline), content)
            if outcome.result is ExecResult.REFUSED:
                raise refusal(label, outcome.why)
            if outcome.result is not ExecResult.STORED:
                raise self._connection.disturbed()
            self._watched = outcome.watched
        _log.warning("the store %s had lost %d acknowledged commits: stored again", label, len(missing))
