"""``sqlite:PATH`` keeps scopes in the tables of one SQLite file: durable, and without a server."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import trio

from vfsd.errors import ScopeMissing, StoreUnreachable, UsageError
from vfsd.store.base import Batch, Capacity, Claim, Claimed, ClaimTerms, Record, ScopeSummary, Store, StoreOptions
from vfsd.store.owner import TAKE_OVER, Owner
from vfsd.store.records import check_format
from vfsd.store.sqlite import leftovers, rows, scope_rows
from vfsd.store.sqlite.claim import SqliteClaim
from vfsd.store.sqlite.database import Database, transaction
from vfsd.store.sqlite.scope_rows import Grant, ScopeRow
from vfsd.tree.change import CHUNK_SIZE, Limits


class SqliteStore(Store):
    """Scopes in the file at *path*."""

    def __init__(self, path: Path, options: StoreOptions) -> None:
        self._database = Database(path, options.timeout)
        self.label = self._database.label

    async def check(self) -> list[str]:
        """See :meth:`Store.check`. A missing file is not an error: the first claim creates it."""
        if self._database.exists():
            await self._database.open()
        return []

    async def claim(self, scope: str, owner: Owner, terms: ClaimTerms) -> Claim:
        """See :meth:`Store.claim`."""
        if not self._database.exists() and not terms.create:
            raise self._missing(scope)
        created, grant, limits = await self._database.run(
            lambda connection: self._claim(connection, scope, owner, terms), create=terms.create
        )
        return SqliteClaim(self._database, grant, Claimed(scope, owner, limits, created))

    def _claim(
        self, connection: sqlite3.Connection, scope: str, owner: Owner, terms: ClaimTerms
    ) -> tuple[bool, Grant, Limits]:
        with transaction(connection):
            row = scope_rows.find(connection, scope)
            if row is None:
                if not terms.create:
                    raise self._missing(scope)
                grant = scope_rows.create(connection, scope, owner)
            else:
                check_format(scope, row.format, row.chunk_size, CHUNK_SIZE)
                row.raise_if_damaged()
                if not terms.take_over:
                    row.raise_if_held(last_resort=TAKE_OVER)
                grant = scope_rows.change_owner(connection, row, owner)
            return row is None, grant, scope_rows.update_limits(connection, grant, terms.limits)

    def key_of(self, scope: str, record: Record) -> str:
        """See :meth:`Store.key_of`. The number of the scope, which a row has too, is left out."""
        return rows.place_of(record)

    async def load(self, scope: str) -> AsyncIterator[Batch]:
        """See :meth:`Store.load`. All batches come from one read transaction."""
        if not self._database.exists():
            raise self._missing(scope)
        with closing(await self._database.snapshot()) as connection, self._database.translating_errors():
            row = scope_rows.find(connection, scope)
            if row is None:
                raise self._missing(scope)
            check_format(scope, row.format, row.chunk_size, CHUNK_SIZE)
            done, total = 0, rows.count(connection, row.id)
            yield Batch((), tuple(row.damages()), done, total, row.next_ino)
            for part in rows.read(connection, row.id):
                done += part.rows
                yield Batch(part.ops, part.damages, done, total, row.next_ino)
                await trio.lowlevel.checkpoint()

    async def capacity(self) -> Capacity:
        """See :meth:`Store.capacity`: the size of the disk, and what can still be written to it."""
        database = self._database
        if not database.exists():
            return Capacity(*database.total_and_free(None))
        return Capacity(*await database.run(database.total_and_free))

    async def scopes(self) -> list[ScopeSummary]:
        """See :meth:`Store.scopes`."""
        self._raise_if_absent()
        return await self._database.run(scope_rows.summaries)

    async def droppable(self, scope: str) -> ScopeSummary:
        """See :meth:`Store.droppable`."""
        self._raise_if_absent()
        return await self._database.run(
            lambda connection: scope_rows.summary(connection, self._unheld(connection, scope))
        )

    def _raise_if_absent(self) -> None:
        """Raise StoreUnreachable if there is no file: only a claim creates it."""
        if not self._database.exists():
            raise StoreUnreachable(f"store {self.label}: there is no such file; vfsd mount creates it")

    async def drop(self, scope: str) -> None:
        """See :meth:`Store.drop`."""
        if not self._database.exists():
            raise self._missing(scope)
        await self._database.run(lambda connection: self._drop(connection, scope))
        await self._database.run_in_slices(_delete_slice)

    def _drop(self, connection: sqlite3.Connection, scope: str) -> None:
        with transaction(connection):
            rows.erase(connection, self._unheld(connection, scope).id)

    def _unheld(self, connection: sqlite3.Connection, scope: str) -> ScopeRow:
        """Return the row of *scope*. Raises ScopeMissing, ScopeBusy."""
        row = scope_rows.find(connection, scope)
        if row is None:
            raise self._missing(scope)
        row.raise_if_held()
        return row

    async def aclose(self) -> None:
        """See :meth:`Store.aclose`."""
        self._database.close()

    def _missing(self, scope: str) -> ScopeMissing:
        return ScopeMissing(f"there is no scope {scope} in {self.label}")


def _delete_slice(connection: sqlite3.Connection) -> bool:
    """Delete a slice of destroyed scopes. Return whether there was anything to do."""
    with transaction(connection):
        return leftovers.delete_scopes(connection)


def open_store(url: str, options: StoreOptions) -> Store:
    """Return the store for ``sqlite:PATH``. Nothing in the path is decoded. Raises UsageError if there is no path."""
    path = url.partition(":")[2]
    if path.startswith("//") and not path.startswith("///"):
        raise UsageError(f"store {url}: a file has no host; write sqlite:PATH, as in sqlite:/var/lib/vfsd.db")
    if not path.strip("/"):
        raise UsageError(f"store {url} names no file; write sqlite:PATH, as in sqlite:/var/lib/vfsd.db")
    return SqliteStore(Path(path.removeprefix("//")).absolute(), options)
