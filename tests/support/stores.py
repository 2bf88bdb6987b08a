"""Backends for tests that run over every store, and what these tests need: owners, writers, all records of a scope.

A backend keeps scopes. A test opens any number of stores on one backend, as several daemons do. The durable backends
can also inspect and damage what is stored: they access SQLite and Redis (docs/format.md) directly, without vfsd.
"""

import abc
import secrets
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import trio

from tests.support.servers import RedisServer
from vfsd import clock
from vfsd.store.base import Batch, Claim, ClaimTerms, Damage, Store, StoreOptions
from vfsd.store.memory import MemoryStore
from vfsd.store.owner import Owner
from vfsd.store.url import open_store
from vfsd.tree.change import Attributes, Change, Op, PutChunks, PutEntry, PutInode

TIMEOUT = 60.0
"""How long (s) a test waits for a condition before it fails. It is long, so a slow machine fails no test."""


class Backend(abc.ABC):
    """Something that keeps scopes, and that several stores can open."""

    @abc.abstractmethod
    def open(self, options: StoreOptions = StoreOptions()) -> Store:  # noqa: B008 (immutable)
        """Return a new store on this backend."""


class MemoryBackend(Backend):
    """Scopes in this process. All stores on it are the same object."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    def open(self, options: StoreOptions = StoreOptions()) -> Store:  # noqa: B008 (immutable)
        return self._store


class DurableBackend(Backend):
    """Scopes that outlive the process that wrote them, and methods that inspect or damage them."""

    def __init__(self, url: str) -> None:
        self.url = url

    def open(self, options: StoreOptions = StoreOptions()) -> Store:  # noqa: B008 (immutable)
        return open_store(self.url, options)

    @abc.abstractmethod
    def corrupt_inode(self, scope: str, ino: int) -> str:
        """Make the record of *ino* unreadable. Return the part of its key that a damage report must contain."""

    @abc.abstractmethod
    def corrupt_entry(self, scope: str, parent: int, name: bytes) -> str:
        """Make the entry *name* unreadable. Return the part of its key that a damage report must contain."""

    @abc.abstractmethod
    def corrupt_chunk(self, scope: str, ino: int, number: int) -> str:
        """Make a chunk longer than a chunk can be. Return the part of its key that a damage report must contain."""

    @abc.abstractmethod
    def set_format(self, scope: str, version: int) -> None:
        """Change the format version of the scope."""

    @abc.abstractmethod
    def end_lease(self, scope: str) -> None:
        """End the owner's lease, as if the owner had not renewed it for a long time."""

    @abc.abstractmethod
    def lease_end(self, scope: str) -> int:
        """Return when the lease ends (ns, wall clock). The result may be late by the duration of the query."""

    def is_locked(self) -> bool:
        """Return whether some process is in the middle of a change, so nobody else can change anything."""
        return False

    @abc.abstractmethod
    def leftover_data(self, scope: str) -> list[str]:
        """Return the names of the tables or keys that still have data of the destroyed *scope*."""


class SqliteBackend(DurableBackend):
    """A SQLite file at *path*."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"sqlite:{path}")
        self.path = path

    def corrupt_inode(self, scope: str, ino: int) -> str:
        self._execute("UPDATE inodes SET record = x'00' WHERE scope = :scope AND ino = :ino", scope, ino=ino)
        return f"inodes {ino}"

    def corrupt_entry(self, scope: str, parent: int, name: bytes) -> str:
        key = b"%d/%b" % (parent, name)
        self._execute("UPDATE entries SET value = x'2121' WHERE scope = :scope AND key = :key", scope, key=key)
        return f"entries {key.decode()}"

    def corrupt_chunk(self, scope: str, ino: int, number: int) -> str:
        self._execute(
            "UPDATE chunks SET content = zeroblob(100000) WHERE scope = :scope AND ino = :ino AND number = :number",
            scope,
            ino=ino,
            number=number,
        )
        return f"chunks {ino} {number}"

    def set_format(self, scope: str, version: int) -> None:
        self._execute("UPDATE scopes SET format = :version WHERE id = :scope", scope, version=version)

    def end_lease(self, scope: str) -> None:
        self._execute("UPDATE scopes SET lease_ns = :now - 1 WHERE id = :scope", scope, now=clock.now())

    def lease_end(self, scope: str) -> int:
        with closing(sqlite3.connect(self.path)) as connection:
            row = connection.execute("SELECT lease_ns FROM scopes WHERE name = ?", (scope,)).fetchone()
        return int(row[0])

    def is_locked(self) -> bool:
        with closing(sqlite3.connect(self.path, timeout=0, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
        return False

    def leftover_data(self, scope: str) -> list[str]:
        with closing(sqlite3.connect(self.path)) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            left = {
                table: connection.execute(f"SELECT COUNT(*) FROM {table} WHERE scope NOT IN (SELECT id FROM scopes)")
                for table in tables
                if table not in ("scopes", "sqlite_sequence")
            }
            return [table for table, rows in left.items() if rows.fetchone() != (0,)]

    def _execute(self, statement: str, scope: str, **values: int | bytes) -> None:
        """Change exactly one row of *scope*. In the statement ``:scope`` is the number of the scope."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            (number,) = connection.execute("SELECT id FROM scopes WHERE name = ?", (scope,)).fetchone()
            changed = connection.execute(statement, {"scope": number, **values}).rowcount
        assert changed == 1, f"{changed} rows changed by {statement}"


class RedisBackend(DurableBackend):
    """A running Redis or Valkey *server*."""

    def __init__(self, server: RedisServer) -> None:
        super().__init__(server.url)
        self._server = server

    def corrupt_inode(self, scope: str, ino: int) -> str:
        return self._corrupt(f"vfsd:{{{scope}}}:inodes", b"%d" % ino, b"\0")

    def corrupt_entry(self, scope: str, parent: int, name: bytes) -> str:
        return self._corrupt(f"vfsd:{{{scope}}}:entries", b"%d/%b" % (parent, name), b"!!")

    def corrupt_chunk(self, scope: str, ino: int, number: int) -> str:
        return self._corrupt(f"vfsd:{{{scope}}}:data:{ino}", b"%d" % number, bytes(100_000))

    def _corrupt(self, key: str, name: bytes, value: bytes) -> str:
        with self.client() as client:
            assert client.hset(key, name, value) == 0, f"there was no {name!r} in {key}"
        return f"{key} field {name!r}"

    def set_format(self, scope: str, version: int) -> None:
        with self.client() as client:
            client.hset(f"vfsd:{{{scope}}}:scope", "format", version)

    def end_lease(self, scope: str) -> None:
        with self.client() as client:
            assert client.delete(f"vfsd:{{{scope}}}:lease") == 1, "there was no lease"

    def expire_lease(self, scope: str) -> None:
        """End the lease if there is one."""
        with self.client() as client:
            client.delete(f"vfsd:{{{scope}}}:lease")

    def lease_end(self, scope: str) -> int:
        with self.client() as client:
            return clock.now() + int(client.pttl(f"vfsd:{{{scope}}}:lease")) * 1_000_000

    def leftover_data(self, scope: str) -> list[str]:
        with self.client() as client:
            return [key.decode() for key in client.keys(f"vfsd:{{{scope}}}:*")]

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Yield a connection to the server, without vfsd."""
        with self._server.client() as client:
            yield client


# --- the records of a scope


@dataclass
class StoredRecords:
    """Everything that a store yields for a scope."""

    inodes: dict[int, Attributes] = field(default_factory=dict)
    entries: dict[tuple[int, bytes], tuple[int, int]] = field(default_factory=dict)
    chunks: dict[tuple[int, int], bytes] = field(default_factory=dict)
    damages: list[Damage] = field(default_factory=list)
    next_ino: int = 0

    def add(self, batch: Batch) -> None:
        self.damages += batch.damages
        self.next_ino = batch.next_ino
        for op in batch.ops:
            self._put(op)

    def _put(self, op: Op) -> None:
        match op:
            case PutInode():
                assert not self.entries, "an inode came after entries"
                assert not self.chunks, "an inode came after chunks"
                self.inodes[op.ino] = op.attributes
            case PutEntry():
                self.entries[op.parent, op.name] = op.ino, op.cookie
            case PutChunks():
                self.chunks.update({(op.ino, number): bytes(chunk) for number, chunk in op.chunks.items()})
            case _:
                raise AssertionError(f"a store yields only records that exist, not {op}")


@asynccontextmanager
async def loading(backend: Backend, scope: str) -> AsyncIterator[AsyncIterator[Batch]]:
    """Yield the batches of *scope* from a store that is opened for this. The caller may stop before the last batch."""
    store = backend.open()
    try:
        async with aclosing(cast("AsyncGenerator[Batch, None]", store.load(scope))) as batches:
            yield batches
    finally:
        await store.aclose()


async def stored(backend: Backend, scope: str) -> StoredRecords:
    """Return everything that a new store finds in *scope*."""
    found, done = StoredRecords(), 0
    async with loading(backend, scope) as batches:
        async for batch in batches:
            assert done <= batch.done <= batch.total, "progress goes back, or beyond the end"
            done = batch.done
            found.add(batch)
    return found


# --- owners and writers


def remote_owner(mountpoint: str = "/mnt/elsewhere") -> Owner:
    """Return an owner on another host: this host cannot find out whether it is alive."""
    return Owner(
        token=secrets.token_hex(16),
        host="far.example",
        host_id="another boot/another namespace",
        pid=4711,
        started=1,
        mountpoint=mountpoint,
        since_ns=clock.now(),
    )


class ScopeWriter(NamedTuple):
    """A claimed scope, and the store that it was claimed in."""

    store: Store
    claim: Claim

    async def commit(self, *ops: Op, grows: bool = True) -> None:
        """Commit *ops* as one change."""
        await self.claim.commit(Change(ops, grows))


@asynccontextmanager
async def claimed(
    backend: Backend,
    scope: str,
    owner: Owner | None = None,
    terms: ClaimTerms = ClaimTerms(),  # noqa: B008 (immutable)
    options: StoreOptions = StoreOptions(),  # noqa: B008 (immutable)
) -> AsyncIterator[ScopeWriter]:
    """Claim *scope* and keep the claim, as a daemon does. Release it at the end."""
    store = backend.open(options)
    try:
        await store.check()
        claim = await store.claim(scope, owner or remote_owner(), terms)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(claim.keep)
            yield ScopeWriter(store, claim)
            nursery.cancel_scope.cancel()
        await claim.release()
    finally:
        await store.aclose()


def regular(size: int = 1 << 40, **fields: Any) -> Attributes:
    """Return attributes of a regular file, with *size* and other *fields* as given."""
    return Attributes(0o100644, 1, 1000, 1000, 0, size, 1, 2, 3)._replace(**fields)


def directory() -> Attributes:
    """Return attributes of a directory."""
    return Attributes(0o40755, 2, 1000, 1000, 0, 0, 1, 2, 3)
