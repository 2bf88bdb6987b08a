"""A claimed scope in an SQLite file: its commits, its lease, and keeping the write-ahead log short.

Commits run in the event loop. With write-ahead logging and ``synchronous=NORMAL`` a commit writes to the page cache
and waits for no disk: about a tenth of a millisecond, several times less than handing it to a thread and back. What
does take longer runs in threads, through connections of their own: a checkpoint of the log, :meth:`SqliteClaim.sync`,
a long commit, and the renewal of the lease. Commits are not grouped: none of them waits, so there is
nothing to group. Only while somebody else locks the file does a commit wait, by itself and no longer than its time-out.

A commit survives the end of the daemon, however it ends. ``sync`` makes it survive the end of the host.
"""

import logging
import sqlite3
from typing import NamedTuple

import trio

from vfsd.errors import Fenced, StoreError, StoreFull
from vfsd.store.base import Claim, Claimed
from vfsd.store.lease import Lease
from vfsd.store.owner import describe_json
from vfsd.store.sqlite import leftovers, rows, scope_rows
from vfsd.store.sqlite.database import Database, transaction
from vfsd.store.sqlite.scope_rows import Grant
from vfsd.tree.change import Change, PutChunks

_log = logging.getLogger(__name__)

_CHECKPOINT_ROWS = 500
"""Changed rows after which the log is checkpointed: some megabytes of log."""

_MANY_CHUNKS, _MANY_OPERATIONS = 128, 256
"""Chunks of one operation, or operations of a change, above which a thread commits it: in the event loop it would hold
up everybody else. A write that comes through the kernel has at most 1 MiB, 65 chunks."""


class _Written(NamedTuple):
    """What a commit did: the number of *rows* that it changed, and whether it *leaves_rows* to delete later."""

    rows: int
    leaves_rows: bool


class SqliteClaim(Claim):
    """The claim on a scope of *database* for which *grant* was given."""

    def __init__(self, database: Database, grant: Grant, claimed: Claimed) -> None:
        super().__init__(claimed)
        self._database = database
        self._grant = grant
        self._lease: Lease[Fenced] = Lease(self.scope, self._renew)
        self._lost: Fenced | None = None
        self._ended = trio.Event()
        self._pending = 0
        self._rows_in_log = 0
        self._has_leftovers = True  # of an earlier daemon, until it is known that there are none
        self._leftovers_due = trio.Event()
        self._leftovers_due.set()
        self._checkpoint_due = trio.Event()
        if not database.notices_writes:  # a killed daemon left a log
            self._checkpoint_due.set()

    @property
    def pending(self) -> int:
        """How many commits wait until another process unlocks the file."""
        return self._pending

    # --- keeping it

    async def keep(self) -> None:
        """See :meth:`Claim.keep`."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._checkpoint_when_due)
            nursery.start_soon(self._delete_leftovers_when_due)
            nursery.start_soon(self._keep_lease)
            await self._ended.wait()
            nursery.cancel_scope.cancel()

    async def _keep_lease(self) -> None:
        self._lose(await self._lease.keep())

    def _renew(self) -> Fenced | None:
        """Extend the lease. Return None, or why the claim is lost. Raises StoreError.

        If it fails the lease may end, and another owner may claim: the epoch keeps that safe.
        """
        return self._database.call_apart(self._renewed)

    def _renewed(self, connection: sqlite3.Connection) -> Fenced | None:
        return None if scope_rows.renew(connection, self._grant) else self._reason(connection)

    def _lose(self, reason: Fenced) -> Fenced:
        """Give the claim up for good, and return the reason."""
        if self._lost is None:
            self._lost = reason
            _log.error("%s; this mount stays readable: unmount it, and mount again to go on", reason)
            self._ended.set()
        return self._lost

    def _reason(self, connection: sqlite3.Connection) -> Fenced:
        row = scope_rows.find(connection, self.scope)
        if row is None:
            return Fenced(f"scope {self.scope} in {self._database.label} has been destroyed")
        return Fenced(f"scope {self.scope} has been claimed by another owner: {describe_json(row.owner)}")

    async def _checkpoint_when_due(self) -> None:
        """Move the log into the file whenever it has grown. Commits go on at the same time."""
        while True:
            await self._checkpoint_due.wait()
            self._checkpoint_due = trio.Event()
            try:
                await self._database.checkpoint()
            except StoreError as error:
                _log.warning("could not checkpoint the log, so it keeps growing: %s", error)

    async def _delete_leftovers_when_due(self) -> None:
        """Delete what commits removed, in slices. Commits go on between the slices."""
        while True:
            await self._leftovers_due.wait()
            self._leftovers_due = trio.Event()
            try:
                await self._database.run_in_slices(self._delete_slice)
            except StoreError as error:
                _log.warning("could not delete removed content, so it keeps its space for now: %s", error)

    def _delete_slice(self, connection: sqlite3.Connection) -> bool:
        before = connection.total_changes
        with transaction(connection):
            self._has_leftovers = leftovers.delete_chunks(connection, self._grant.scope)
            found = self._has_leftovers or leftovers.delete_scopes(connection)
        self._note_changes(connection.total_changes - before)
        return found

    async def release(self) -> None:
        """See :meth:`Claim.release`."""
        self._end()
        await self._database.run(lambda connection: scope_rows.release(connection, self._grant))

    async def undo(self) -> None:
        """See :meth:`Claim.undo`."""
        self._end()
        await self._database.run(self._erase)

    def _end(self) -> None:
        if self._lost is None:
            self._lost = Fenced(f"scope {self.scope} has been released")
        self._ended.set()

    def _erase(self, connection: sqlite3.Connection) -> None:
        with transaction(connection):
            if scope_rows.is_held(connection, self._grant):
                rows.erase(connection, self._grant.scope)

    # --- changing

    def raise_if_unusable(self) -> None:
        """See :meth:`Claim.raise_if_unusable`."""
        if self._lost is not None:
            raise self._lost.with_traceback(None)

    async def commit(self, change: Change) -> None:
        """See :meth:`Claim.commit`."""
        self._pending += 1
        try:
            while not await self._is_committed(change):
                pass
        finally:
            self._pending -= 1

    async def _is_committed(self, change: Change) -> bool:
        """Commit *change*. If the store is full, delete a slice of what was removed before, and return False."""
        run = self._database.run_in_thread if _is_long(change) else self._database.run
        try:
            written = await run(lambda connection: self._commit(connection, change))
        except Fenced as fenced:
            raise self._lose(fenced).with_traceback(None) from None
        except StoreFull:
            if not await self._database.run(self._delete_slice):
                raise
            await self._database.pause()
            return False
        self._note(written)
        return True

    def _note(self, written: _Written) -> None:
        """Remember what a commit leaves to be done."""
        if written.leaves_rows:
            self._has_leftovers = True
            self._leftovers_due.set()
        self._note_changes(written.rows)

    def _commit(self, connection: sqlite3.Connection, change: Change) -> _Written:
        """Commit *change*. A thread may do this, so nothing in memory changes. Raises Fenced, StoreFull."""
        self.raise_if_unusable()
        before = connection.total_changes
        if change.grows:
            self._database.raise_if_full(connection)
        with transaction(connection):
            next_ino = scope_rows.next_ino(connection, self._grant)
            if next_ino is None:
                raise self._reason(connection)
            leaves_rows = self._write(connection, change)
            scope_rows.raise_next_ino(connection, self._grant, next_ino, change)
        return _Written(connection.total_changes - before, leaves_rows)

    def _write(self, connection: sqlite3.Connection, change: Change) -> bool:
        """Write the operations of *change*. Return whether rows are left to delete later."""
        scope, leaves_rows = self._grant.scope, False
        for op in change.ops:
            if (leaves_rows or self._has_leftovers) and isinstance(op, PutChunks):
                leftovers.revive(connection, scope, op.ino, op.chunks)
            if rows.write(connection, scope, op):
                leaves_rows = True
        return leaves_rows

    def _note_changes(self, count: int) -> None:
        self._rows_in_log += count
        if self._rows_in_log > _CHECKPOINT_ROWS:
            self._rows_in_log = 0
            self._checkpoint_due.set()

    async def sync(self) -> None:
        """See :meth:`Claim.sync`: flush the log to the disk."""
        await self._database.flush_log()


def _is_long(change: Change) -> bool:
    """Whether it takes long to commit *change*."""
    for op in change.ops:
        if type(op) is PutChunks and len(op.chunks) > _MANY_CHUNKS:
            return True
    return len(change.ops) > _MANY_OPERATIONS
