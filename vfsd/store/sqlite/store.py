"""``sqlite:PATH`` keeps scopes in one SQLite file: durable, and no server needed.

Commits run in the event loop, not in a thread: with write-ahead logging and ``synchronous=NORMAL`` a commit writes
to the page cache and waits for no disk. That takes about a tenth of a millisecond; handing it to a thread and back
would take several times as long. What does wait for the disk, taking the log into the file and
:meth:`~SqliteStore.sync`, runs in threads beside the commits. Nor are commits grouped: as none waits, there is
nothing to gather, and gathering by waiting would cost a lone commit a turn of the event loop. Only a file locked by
another process makes commits wait, each by itself and no longer than its time-out.

A commit survives the end of the daemon, however it ends; ``sync`` makes it survive the end of the host.
"""

import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import trio

from vfsd.errors import Fenced, ScopeMissing, StoreError, UsageError
from vfsd.store.base import LEASE_SECONDS, Batch, Capacity, Claim, ClaimTerms, ScopeSummary, Store, StoreOptions
from vfsd.store.owner import Owner
from vfsd.store.records import check_format
from vfsd.store.sqlite import claims, rows
from vfsd.store.sqlite.claims import Grant
from vfsd.store.sqlite.database import Database, transaction
from vfsd.tree.change import CHUNK_SIZE, Change, Limits

_log = logging.getLogger(__name__)

_CHECKPOINT_ROWS = 500
"""Rows changed after which the log is taken into the file: some megabytes of log."""


class _Held:
    """A claim as this store keeps it: what was granted, and whether that has been lost, and to whom."""

    def __init__(self, grant: Grant) -> None:
        self.grant = grant
        self.lost = trio.Event()
        self.reason: Fenced | None = None

    def lose(self, reason: Fenced) -> Fenced:
        """Give the claim up for good, and return *reason*."""
        _log.error("%s; this mount stays readable: unmount it, and mount again to go on", reason)
        self.reason = reason
        self.lost.set()
        return reason


class SqliteStore(Store):
    """Scopes in the tables of one file."""

    def __init__(self, path: Path, options: StoreOptions) -> None:
        self._database = Database(path, options.timeout)
        self.label = self._database.label
        self._held: dict[Claim, _Held] = {}
        self._pending = 0
        self._checkpoint_after = _CHECKPOINT_ROWS
        self._checkpoint_due = trio.Event()

    @property
    def pending(self) -> int:
        """How many commits wait for another process to let go of the file."""
        return self._pending

    async def check(self) -> list[str]:
        """See :meth:`Store.check`. A missing file is no fault: the first claim makes it."""
        if self._database.exists():
            await self._database.open()
        return []

    # --- who may write

    async def claim(self, scope: str, owner: Owner, terms: ClaimTerms) -> Claim:
        """See :meth:`Store.claim`."""
        if not self._database.exists() and not terms.create:
            raise self._missing(scope)
        created, grant, limits = await self._database.run(
            lambda connection: self._claim(connection, scope, owner, terms), create=terms.create
        )
        claim = Claim(scope, owner, created, limits)
        self._held[claim] = _Held(grant)
        return claim

    def _claim(
        self, connection: sqlite3.Connection, scope: str, owner: Owner, terms: ClaimTerms
    ) -> tuple[bool, Grant, Limits]:
        with transaction(connection):
            head = claims.find(connection, scope)
            if head is None:
                if not terms.create:
                    raise self._missing(scope)
                grant = claims.create(connection, scope, owner)
            else:
                check_format(scope, head.format, head.chunk_size, CHUNK_SIZE)
                if not terms.take_over:
                    head.refuse_held()
                grant = claims.hand_over(connection, head, owner)
            return head is None, grant, claims.set_limits(connection, grant, terms.limits)

    async def keep(self, claim: Claim) -> None:
        """See :meth:`Store.keep`."""
        held = self._held.get(claim)
        if held is None:
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_log_short)
            while not held.lost.is_set():
                await self._renew(claim, held)
                with trio.move_on_after(LEASE_SECONDS / 3):
                    await held.lost.wait()
            nursery.cancel_scope.cancel()

    async def _renew(self, claim: Claim, held: _Held) -> None:
        """Put the end of the lease off. If that fails the lease may end, and another owner may claim: no harm."""
        try:
            await self._database.run(lambda connection: self._renew_or_lose(connection, claim, held))
        except StoreError as error:
            _log.warning("could not renew the lease of scope %s: %s", claim.scope, error)

    def _renew_or_lose(self, connection: sqlite3.Connection, claim: Claim, held: _Held) -> None:
        if not claims.renew(connection, held.grant):
            held.lose(self._fenced(connection, claim.scope))

    async def _keep_log_short(self) -> None:
        """Take the log into the file whenever it has grown, beside the commits."""
        while True:
            await self._checkpoint_due.wait()
            self._checkpoint_due = trio.Event()
            try:
                await trio.to_thread.run_sync(self._database.checkpoint)
            except StoreError as error:
                _log.warning("could not take the log into the file, it goes on growing: %s", error)

    async def release(self, claim: Claim) -> None:
        """See :meth:`Store.release`."""
        held = self._held.pop(claim, None)
        if held is not None:
            held.lost.set()
            await self._database.run(lambda connection: claims.release(connection, held.grant))

    # --- changing

    async def commit(self, claim: Claim, change: Change) -> None:
        """See :meth:`Store.commit`."""
        self._pending += 1
        try:
            await self._database.run(lambda connection: self._commit(connection, claim, change))
        finally:
            self._pending -= 1

    def _commit(self, connection: sqlite3.Connection, claim: Claim, change: Change) -> None:
        held = self._writable(claim)
        if change.grows:
            self._database.check_room(connection)
        with transaction(connection):
            next_ino = claims.next_ino(connection, held.grant)
            if next_ino is None:
                raise held.lose(self._fenced(connection, claim.scope))
            for op in change.ops:
                rows.write(connection, held.grant.scope, op)
            claims.raise_next_ino(connection, held.grant, next_ino, change)
        self._count_rows(connection)

    def raise_if_unusable(self, claim: Claim) -> None:
        """See :meth:`Store.refuse_if_hopeless`."""
        self._writable(claim)

    def _writable(self, claim: Claim) -> _Held:
        """Return what is held for *claim*. Raises Fenced once it is known to be lost."""
        held = self._held.get(claim)
        if held is None:
            raise Fenced(f"scope {claim.scope} has been released")
        if held.reason is not None:
            raise held.reason.with_traceback(None)
        return held

    def _fenced(self, connection: sqlite3.Connection, scope: str) -> Fenced:
        head = claims.find(connection, scope)
        if head is None:
            return Fenced(f"scope {scope} in {self.label} has been destroyed")
        return Fenced(f"scope {scope} has been claimed by another owner: {head.last_owner().describe()}")

    def _count_rows(self, connection: sqlite3.Connection) -> None:
        """Ask for a checkpoint when enough has changed since the last one."""
        if connection.total_changes > self._checkpoint_after:
            self._checkpoint_after = connection.total_changes + _CHECKPOINT_ROWS
            self._checkpoint_due.set()

    async def sync(self) -> None:
        """See :meth:`Store.sync`: flush the log to the disk."""
        await trio.to_thread.run_sync(self._database.flush_log)

    # --- reading

    async def load(self, scope: str) -> AsyncIterator[Batch]:
        """See :meth:`Store.load`; all batches out of one read transaction."""
        if not self._database.exists():
            raise self._missing(scope)
        with closing(await self._database.snapshot()) as connection, self._database.telling():
            head = claims.find(connection, scope)
            if head is None:
                raise self._missing(scope)
            check_format(scope, head.format, head.chunk_size, CHUNK_SIZE)
            done, total = 0, rows.count(connection, head.id)
            yield Batch((), (), done, total, head.next_ino)
            for part in rows.read(connection, head.id):
                done += part.rows
                yield Batch(part.ops, part.damages, done, total, head.next_ino)
                await trio.lowlevel.checkpoint()

    async def capacity(self) -> Capacity:
        """See :meth:`Store.capacity`: the size of the disk, and what can still be written to it."""
        database = self._database
        return Capacity(*(await database.run(database.room) if database.exists() else database.room(None)))

    async def scopes(self) -> list[ScopeSummary]:
        """See :meth:`Store.scopes`."""
        return await self._database.run(claims.summaries) if self._database.exists() else []

    async def drop(self, scope: str) -> None:
        """See :meth:`Store.drop`."""
        if not self._database.exists():
            raise self._missing(scope)
        await self._database.run(lambda connection: self._drop(connection, scope))

    def _drop(self, connection: sqlite3.Connection, scope: str) -> None:
        with transaction(connection):
            head = claims.find(connection, scope)
            if head is None:
                raise self._missing(scope)
            head.refuse_held()
            rows.erase(connection, head.id)

    async def aclose(self) -> None:
        """See :meth:`Store.aclose`."""
        self._database.close()

    def _missing(self, scope: str) -> ScopeMissing:
        return ScopeMissing(f"there is no scope {scope} in {self.label}")


def open_store(url: str, options: StoreOptions) -> Store:
    """Return the store for ``sqlite:PATH``; the path is taken as it stands. Raises UsageError if there is none."""
    path = url.partition(":")[2]
    if path.startswith("//") and not path.startswith("///"):
        raise UsageError(f"store {url}: a file has no host; write sqlite:PATH, as in sqlite:/var/lib/vfsd.db")
    if not path.strip("/"):
        raise UsageError(f"store {url} names no file; write sqlite:PATH, as in sqlite:/var/lib/vfsd.db")
    return SqliteStore(Path(path.removeprefix("//")).absolute(), options)
