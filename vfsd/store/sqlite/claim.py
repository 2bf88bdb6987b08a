"""A claimed scope in an SQLite file: its commits, its lease, and keeping the write-ahead log short.

Commits run in the event loop. With write-ahead logging and ``synchronous=NORMAL`` a commit writes to the page cache
and waits for no disk: about a tenth of a millisecond, several times less than handing it to a thread and back. What
does wait for the disk, a checkpoint of the log and :meth:`SqliteClaim.sync`, runs in threads. Commits are not grouped:
none of them waits, so there is nothing to group. Only while another process locks the file does a commit wait, by
itself and no longer than its time-out.

A commit survives the end of the daemon, however it ends. ``sync`` makes it survive the end of the host.
"""

import logging
import sqlite3

import trio

from vfsd.errors import Fenced, StoreError, StoreFull
from vfsd.store.base import LEASE_SECONDS, Claim, Claimed
from vfsd.store.owner import describe_json
from vfsd.store.sqlite import leftovers, rows, scope_rows
from vfsd.store.sqlite.database import Database, transaction
from vfsd.store.sqlite.scope_rows import Grant
from vfsd.tree.change import Change, PutChunks

_log = logging.getLogger(__name__)

_CHECKPOINT_ROWS = 500
"""Changed rows after which the log is checkpointed: some megabytes of log."""


class SqliteClaim(Claim):
    """The claim on a scope of *database* for which *grant* was given."""

    def __init__(self, database: Database, grant: Grant, claimed: Claimed) -> None:
        super().__init__(claimed)
        self._database = database
        self._grant = grant
        self._lost: Fenced | None = None
        self._ended = trio.Event()
        self._pending = 0
        self._checkpoint_after = _CHECKPOINT_ROWS
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
            while not self._ended.is_set():
                await self._renew()
                with trio.move_on_after(LEASE_SECONDS / 3):
                    await self._ended.wait()
            nursery.cancel_scope.cancel()

    async def _renew(self) -> None:
        """Extend the lease. If that fails the lease may end and another owner may claim: the epoch keeps that safe."""
        try:
            await self._database.run(self._renew_or_lose)
        except StoreError as error:
            _log.warning("could not renew the lease of scope %s: %s", self.scope, error)

    def _renew_or_lose(self, connection: sqlite3.Connection) -> None:
        if not scope_rows.renew(connection, self._grant):
            self._lose(connection)

    def _lose(self, connection: sqlite3.Connection) -> Fenced:
        """Give the claim up for good, and return the reason."""
        self._lost = self._reason(connection)
        _log.error("%s; this mount stays readable: unmount it, and mount again to go on", self._lost)
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
        with transaction(connection):
            self._has_leftovers = leftovers.delete_chunks(connection, self._grant.scope)
            found = self._has_leftovers or leftovers.delete_scopes(connection)
        self._note_changes(connection)
        return found

    async def release(self) -> None:
        """See :meth:`Claim.release`."""
        if self._lost is None:
            self._lost = Fenced(f"scope {self.scope} has been released")
        self._ended.set()
        await self._database.run(lambda connection: scope_rows.release(connection, self._grant))

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
        try:
            await self._database.run(lambda connection: self._commit(connection, change))
        except StoreFull:
            if not await self._database.run(self._delete_slice):
                raise
            await self._database.pause()
            return False
        return True

    def _commit(self, connection: sqlite3.Connection, change: Change) -> None:
        self.raise_if_unusable()
        if change.grows:
            self._database.raise_if_full(connection)
        with transaction(connection):
            next_ino = scope_rows.next_ino(connection, self._grant)
            if next_ino is None:
                raise self._lose(connection)
            self._write(connection, change)
            scope_rows.raise_next_ino(connection, self._grant, next_ino, change)
        self._note_changes(connection)

    def _write(self, connection: sqlite3.Connection, change: Change) -> None:
        scope = self._grant.scope
        for op in change.ops:
            if self._has_leftovers and isinstance(op, PutChunks):
                leftovers.revive(connection, scope, op.ino, op.chunks)
            if rows.write(connection, scope, op):
                self._has_leftovers = True
                self._leftovers_due.set()

    def _note_changes(self, connection: sqlite3.Connection) -> None:
        if connection.total_changes > self._checkpoint_after:
            self._checkpoint_after = connection.total_changes + _CHECKPOINT_ROWS
            self._checkpoint_due.set()

    async def sync(self) -> None:
        """See :meth:`Claim.sync`: flush the log to the disk."""
        await self._database.flush_log()
