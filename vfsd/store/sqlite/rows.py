"""A scope as rows: the tables, how operations are written to them, and how they are read again.

Inodes and entries are the records of :mod:`vfsd.store.records`, the same bytes as in every other store. All functions
are synchronous and run in the caller's transaction. They never decide who may write.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from vfsd.store.base import Damage, Record
from vfsd.store.ranges import COUNT_MAX, check_chunk, within
from vfsd.store.records import entry_key, entry_value, pack_inode, unpack_entry, unpack_inode
from vfsd.store.sqlite import leftovers
from vfsd.tree.change import (
    ROOT,
    DropChunks,
    DropEntry,
    DropInode,
    Op,
    PutChunks,
    PutEntry,
    PutInode,
)

SCHEMA = (
    # AUTOINCREMENT never reuses a number: if a scope is destroyed and created again, its former owner stays fenced.
    """CREATE TABLE IF NOT EXISTS scopes (
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, format INTEGER NOT NULL,
        chunk_size INTEGER NOT NULL, created_ns INTEGER NOT NULL, next_ino INTEGER NOT NULL, epoch INTEGER NOT NULL,
        owner TEXT NOT NULL, lease_ns INTEGER NOT NULL,
        limits TEXT NOT NULL) STRICT""",
    """CREATE TABLE IF NOT EXISTS inodes (
        scope INTEGER NOT NULL, ino INTEGER NOT NULL, record BLOB NOT NULL,
        PRIMARY KEY (scope, ino)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS entries (
        scope INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
        PRIMARY KEY (scope, key)) STRICT, WITHOUT ROWID""",
    # This table has row numbers, unlike the others, because rows larger than a page make an index slow.
    """CREATE TABLE IF NOT EXISTS chunks (
        scope INTEGER NOT NULL, ino INTEGER NOT NULL, number INTEGER NOT NULL, content BLOB NOT NULL,
        UNIQUE (scope, ino, number)) STRICT""",
    # What is removed but not deleted yet: see leftovers.
    """CREATE TABLE IF NOT EXISTS dropped_chunks (
        scope INTEGER NOT NULL, ino INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
        PRIMARY KEY (scope, ino, first)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS dropped_scopes (scope INTEGER PRIMARY KEY) STRICT""",
)
"""Each statement does nothing if the table exists, so they also complete a file of an older layout."""

_PUT_INODE = "INSERT INTO inodes VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET record = excluded.record"
_PUT_ENTRY = "INSERT INTO entries VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
_PUT_CHUNK = "INSERT INTO chunks VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET content = excluded.content"
_DROP_INODE = "DELETE FROM inodes WHERE scope = ? AND ino = ?"
_DROP_ENTRY = "DELETE FROM entries WHERE scope = ? AND key = ?"
_DROP_CHUNK = "DELETE FROM chunks WHERE scope = ? AND ino = ? AND number = ?"


def write(connection: sqlite3.Connection, scope: int, op: Op) -> bool:
    """Store one operation of the scope with number *scope*. Return whether rows are left to delete later."""
    match op:
        case PutInode():
            connection.execute(_PUT_INODE, (scope, op.ino, pack_inode(op.attributes)))
        case DropInode():
            connection.execute(_DROP_INODE, (scope, op.ino))
            return leftovers.drop_all_chunks(connection, scope, op.ino, op.attributes.size)
        case PutEntry():
            connection.execute(_PUT_ENTRY, (scope, entry_key(op.parent, op.name), entry_value(op.ino, op.cookie)))
        case DropEntry():
            connection.execute(_DROP_ENTRY, (scope, entry_key(op.parent, op.name)))
        case PutChunks():
            connection.executemany(_PUT_CHUNK, ((scope, op.ino, number, data) for number, data in op.chunks.items()))
        case DropChunks(numbers=None):
            return leftovers.drop_all_chunks(connection, scope, op.ino)
        case DropChunks():
            return _drop_chunks(connection, scope, op.ino, op.numbers or ())
    return False


def _drop_chunks(connection: sqlite3.Connection, scope: int, ino: int, numbers: Sequence[int]) -> bool:
    if len(numbers) > leftovers.SLICE:
        leftovers.drop_chunks(connection, scope, ino, numbers)
        return True
    connection.executemany(_DROP_CHUNK, ((scope, ino, number) for number in numbers))
    return False


def erase(connection: sqlite3.Connection, scope: int) -> None:
    """Remove the scope with number *scope*. Its rows are left to delete later."""
    connection.execute("DELETE FROM scopes WHERE id = ?", (scope,))
    leftovers.drop_scope(connection, scope)


class Slice(NamedTuple):
    """Some rows: the operations in them, and the rows that are damaged. *rows* is the number of rows."""

    ops: tuple[Op, ...]
    damages: tuple[Damage, ...]
    rows: int


_Row: TypeAlias = tuple[Any, ...]


class _Table(NamedTuple):
    """How to read a table: its columns (the last one is the content, the others are the key), *rows* at a time.

    *condition* excludes rows that are removed but not deleted yet.
    """

    name: str
    columns: str
    read: Callable[[_Row], Op]
    rows: int
    condition: str = ""


def _read_inode(row: _Row) -> Op:
    ino, record = row
    return PutInode(within(ino, ROOT, COUNT_MAX, "the inode number"), unpack_inode(record))


def _read_entry(row: _Row) -> Op:
    key, value = row
    return unpack_entry(key, value)


def _read_chunk(row: _Row) -> Op:
    ino, number, content = row
    check_chunk(number, content)
    return PutChunks(ino, {number: content})


_NOT_DROPPED = (
    " AND NOT EXISTS (SELECT 1 FROM dropped_chunks AS dropped WHERE dropped.scope = chunks.scope"
    " AND dropped.ino = chunks.ino AND chunks.number BETWEEN dropped.first AND dropped.last)"
)

_TABLES = (
    _Table("inodes", "ino, record", _read_inode, 1000),
    _Table("entries", "key, value", _read_entry, 1000),
    _Table("chunks", "ino, number, content", _read_chunk, 100, _NOT_DROPPED),
)
"""In the order of the contract: inodes come before the entries and chunks that refer to them."""


def count(connection: sqlite3.Connection, scope: int) -> int:
    """Return the number of rows that :func:`read` yields."""
    return sum(
        connection.execute(
            f"SELECT COUNT(*) FROM {table.name} WHERE scope = ?{table.condition}",  # noqa: S608 (a name from above)
            (scope,),
        ).fetchone()[0]
        for table in _TABLES
    )


def read(connection: sqlite3.Connection, scope: int) -> Iterator[Slice]:
    """Yield all rows of the scope with number *scope*, in slices: inodes, then entries, then chunks.

    First comes a slice without operations: what is wrong with the notes of removed chunks.
    """
    yield Slice((), tuple(_damaged_notes(connection, scope)), 0)
    for table in _TABLES:
        cursor = connection.execute(
            f"SELECT {table.columns} FROM {table.name} WHERE scope = ?{table.condition}",  # noqa: S608 (names from above)
            (scope,),
        )
        while rows := cursor.fetchmany(table.rows):
            yield _slice(table, rows)


def _damaged_notes(connection: sqlite3.Connection, scope: int) -> Iterator[Damage]:
    for ino, first, last in connection.execute("SELECT ino, first, last FROM dropped_chunks WHERE scope = ?", (scope,)):
        try:
            within(ino, ROOT, COUNT_MAX, "the inode number")
            within(first, 0, last, "the first chunk")
        except ValueError as error:
            yield Damage(_place("dropped_chunks", ino, first), str(error))


def _slice(table: _Table, rows: Sequence[_Row]) -> Slice:
    ops: list[Op] = []
    damages: list[Damage] = []
    for row in rows:
        try:
            ops.append(table.read(row))
        except ValueError as error:
            damages.append(Damage(_place(table.name, *row[:-1]), str(error)))
    return Slice(tuple(ops), tuple(damages), len(rows))


def place_of(record: Record) -> str:
    """Return the table and the key of *record*, as people may see them."""
    match record:
        case PutInode():
            return _place("inodes", record.ino)
        case PutEntry():
            return _place("entries", entry_key(record.parent, record.name))
        case PutChunks():
            return _place("chunks", record.ino, min(record.chunks))


def _place(table: str, *key: bytes | int) -> str:
    parts = (part.decode(errors="backslashreplace") if isinstance(part, bytes) else str(part) for part in key)
    return " ".join((table, *parts))
