"""Places where a store can keep scopes, for tests that run over all of them, and a look behind their backs.

A test opens any number of stores on one place, as daemons would. The vandals know each layout, as docs/format.md has
it for Redis, and damage what is stored as no vfsd would.
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

PATIENCE = 60.0
"""Seconds after which a condition that should come true is given up. No test passes or fails by less."""


class Place(abc.ABC):
    """Where scopes are kept, whoever opens it."""

    @abc.abstractmethod
    def open(self, options: StoreOptions = StoreOptions()) -> Store:  # noqa: B008 (immutable)
        """Return another store on this place."""


class MemoryPlace(Place):
    """Scopes of this process: there is but one store on it."""

    def __init__(self) -> None:
        self._store = MemoryStore()

    def open(self, options: StoreOptions = StoreOptions()) -> Store:  # noqa: B008 (immutable)
        return self._store


class DurablePlace(Place):
    """Scopes that outlive who wrote them, and the means to damage them."""

    def __init__(self, url: str) -> None:
        self.url = url

    def open(self, options: StoreOptions = StoreOptions()) -> Store:  # noqa: B008 (immutable)
        return open_store(self.url, options)

    @abc.abstractmethod
    def spoil_inode(self, scope: str, ino: int) -> str:
        """Let the record of *ino* make no sense. Return a part of the key that a report must name."""

    @abc.abstractmethod
    def spoil_entry(self, scope: str, parent: int, name: bytes) -> str:
        """Let the entry *name* make no sense. Return a part of the key that a report must name."""

    @abc.abstractmethod
    def spoil_chunk(self, scope: str, ino: int, number: int) -> str:
        """Let a chunk be longer than chunks are. Return a part of the key that a report must name."""

    @abc.abstractmethod
    def set_format(self, scope: str, version: int) -> None:
        """Let the scope be of another format."""

    @abc.abstractmethod
    def end_lease(self, scope: str) -> None:
        """Let the owner's lease be over, as if it had not been heard of for long."""

    @abc.abstractmethod
    def lease_end(self, scope: str) -> int:
        """Return when the lease ends (ns, wall clock), give or take the time of asking."""

    @abc.abstractmethod
    def remains(self, scope: str) -> list[str]:
        """Return what is still kept of a destroyed *scope*, as the store calls it."""


class SqlitePlace(DurablePlace):
    """A file at *path*."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"sqlite:{path}")
        self.path = path

    def spoil_inode(self, scope: str, ino: int) -> str:
        self._execute("UPDATE inodes SET record = x'00' WHERE scope = :scope AND ino = :ino", scope, ino=ino)
        return f"inodes {ino}"

    def spoil_entry(self, scope: str, parent: int, name: bytes) -> str:
        key = b"%d/%b" % (parent, name)
        self._execute("UPDATE entries SET value = x'2121' WHERE scope = :scope AND key = :key", scope, key=key)
        return f"entries {key.decode()}"

    def spoil_chunk(self, scope: str, ino: int, number: int) -> str:
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

    def remains(self, scope: str) -> list[str]:
        with closing(sqlite3.connect(self.path)) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            left = {
                table: connection.execute(f"SELECT COUNT(*) FROM {table} WHERE scope NOT IN (SELECT id FROM scopes)")
                for table in tables
                if table not in ("scopes", "sqlite_sequence")
            }
            return [table for table, rows in left.items() if rows.fetchone() != (0,)]

    def _execute(self, statement: str, scope: str, **values: int | bytes) -> None:
        """Change exactly one row of *scope*; ``:scope`` stands for its number."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            (number,) = connection.execute("SELECT id FROM scopes WHERE name = ?", (scope,)).fetchone()
            changed = connection.execute(statement, {"scope": number, **values}).rowcount
        assert changed == 1, f"{changed} rows changed by {statement}"


class RedisPlace(DurablePlace):
    """A running *server*."""

    def __init__(self, server: RedisServer) -> None:
        super().__init__(server.url)
        self._server = server

    def spoil_inode(self, scope: str, ino: int) -> str:
        return self._spoil(f"vfsd:{{{scope}}}:inodes", b"%d" % ino, b"\0")

    def spoil_entry(self, scope: str, parent: int, name: bytes) -> str:
        return self._spoil(f"vfsd:{{{scope}}}:entries", b"%d/%b" % (parent, name), b"!!")

    def spoil_chunk(self, scope: str, ino: int, number: int) -> str:
        return self._spoil(f"vfsd:{{{scope}}}:data:{ino}", b"%d" % number, bytes(100_000))

    def _spoil(self, key: str, name: bytes, value: bytes) -> str:
        with self._client() as client:
            assert client.hset(key, name, value) == 0, f"there was no {name!r} in {key}"
        return f"{key} field {name!r}"

    def set_format(self, scope: str, version: int) -> None:
        with self._client() as client:
            client.hset(f"vfsd:{{{scope}}}:scope", "format", version)

    def end_lease(self, scope: str) -> None:
        with self._client() as client:
            assert client.delete(f"vfsd:{{{scope}}}:lease") == 1, "there was no lease"

    def lease_end(self, scope: str) -> int:
        with self._client() as client:
            return clock.now() + int(client.pttl(f"vfsd:{{{scope}}}:lease")) * 1_000_000

    def remains(self, scope: str) -> list[str]:
        with self._client() as client:
            return [key.decode() for key in client.keys(f"vfsd:{{{scope}}}:*")]

    @contextmanager
    def _client(self) -> Iterator[Any]:
        with self._server.client() as client:
            yield client


# --- what is stored


@dataclass
class Stored:
    """All that a store yields of a scope, record by record."""

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
                raise AssertionError(f"a store yields what there is, not {op}")


@asynccontextmanager
async def loading(place: Place, scope: str) -> AsyncIterator[AsyncIterator[Batch]]:
    """Give what a newcomer is told of *scope*, batch by batch; it may be left before the end."""
    store = place.open()
    try:
        async with aclosing(cast("AsyncGenerator[Batch, None]", store.load(scope))) as batches:
            yield batches
    finally:
        await store.aclose()


async def stored(place: Place, scope: str) -> Stored:
    """Return what a newcomer finds of *scope*."""
    found, done = Stored(), 0
    async with loading(place, scope) as batches:
        async for batch in batches:
            assert done <= batch.done <= batch.total, "progress goes back, or beyond the end"
            done = batch.done
            found.add(batch)
    return found


# --- who stores


def stranger(mountpoint: str = "/mnt/elsewhere") -> Owner:
    """Return a daemon on another host: nobody here can tell whether it lives."""
    return Owner(
        token=secrets.token_hex(16),
        host="far.example",
        host_id="another boot/another namespace",
        pid=4711,
        started=1,
        mountpoint=mountpoint,
        since_ns=clock.now(),
    )


class Mount(NamedTuple):
    """A daemon's side of a claimed scope."""

    store: Store
    claim: Claim

    async def commit(self, *ops: Op, grows: bool = True) -> None:
        """Store one change."""
        await self.claim.commit(Change(ops, grows))


@asynccontextmanager
async def mounted(
    place: Place,
    scope: str,
    owner: Owner | None = None,
    terms: ClaimTerms = ClaimTerms(),  # noqa: B008 (immutable)
    options: StoreOptions = StoreOptions(),  # noqa: B008 (immutable)
) -> AsyncIterator[Mount]:
    """Claim *scope* and keep the claim, as a daemon does; release it at the end."""
    store = place.open(options)
    try:
        await store.check()
        claim = await store.claim(scope, owner or stranger(), terms)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(claim.keep)
            yield Mount(store, claim)
            nursery.cancel_scope.cancel()
        await claim.release()
    finally:
        await store.aclose()


def regular(size: int = 1 << 40, **fields: Any) -> Attributes:
    """Return the attributes of some regular file."""
    return Attributes(0o100644, 1, 1000, 1000, 0, size, 1, 2, 3)._replace(**fields)


def directory() -> Attributes:
    """Return the attributes of some directory."""
    return Attributes(0o40755, 2, 1000, 1000, 0, 0, 1, 2, 3)
