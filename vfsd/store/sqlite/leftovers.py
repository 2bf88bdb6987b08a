"""Content that is removed but not deleted yet: it is noted in the commit, and its rows are deleted in slices later.

Deleting the rows of a gibibyte takes most of a second, during which the mount, or every other daemon that shares the
file, would wait. So a commit that removes much only adds a note, in the same transaction, and nobody reads the noted
rows any longer. A slice is a transaction of one or two milliseconds. Notes outlive a crash: the next claim goes on.

Each slice reads its note again, in its own transaction. So any number of processes may delete at the same time, and
content that is written again where a note says "removed" is safe once :func:`revive` has changed the note.
"""

import sqlite3
from collections.abc import Iterable, Iterator

SLICE = 64
"""Chunks that one transaction deletes: a MiB, in one or two milliseconds."""

_SMALL_ROWS = 1000
"""Inodes or entries that one transaction deletes."""

_LAST = (1 << 63) - 1

_NOTE = "INSERT INTO dropped_chunks VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET last = max(last, excluded.last)"
_UNNOTE = "DELETE FROM dropped_chunks WHERE scope = ? AND ino = ? AND first = ?"

_DROP_SLICE = (
    "DELETE FROM chunks WHERE rowid IN"
    " (SELECT rowid FROM chunks WHERE scope = ? AND ino = ? AND number BETWEEN ? AND ? LIMIT ?)"
)

_DROP_OF_SCOPE = (
    "DELETE FROM chunks WHERE rowid IN (SELECT rowid FROM chunks WHERE scope = :scope LIMIT :chunks)",
    "DELETE FROM entries WHERE scope = :scope AND key IN (SELECT key FROM entries WHERE scope = :scope LIMIT :small)",
    "DELETE FROM inodes WHERE scope = :scope AND ino IN (SELECT ino FROM inodes WHERE scope = :scope LIMIT :small)",
    "DELETE FROM dropped_chunks WHERE scope = :scope",
)


def drop_all_chunks(connection: sqlite3.Connection, scope: int, ino: int) -> bool:
    """Remove all chunks of inode *ino*: delete a slice at once, and note the rest. Return whether there is a rest."""
    deleted = connection.execute(_DROP_SLICE, (scope, ino, 0, _LAST, SLICE)).rowcount
    if deleted == SLICE:
        connection.execute(_NOTE, (scope, ino, 0, _LAST))
    return deleted == SLICE


def drop_chunks(connection: sqlite3.Connection, scope: int, ino: int, numbers: Iterable[int]) -> None:
    """Note that the chunks *numbers* of inode *ino* are removed."""
    connection.executemany(_NOTE, ((scope, ino, first, last) for first, last in _ranges(numbers)))


def drop_scope(connection: sqlite3.Connection, scope: int) -> None:
    """Note that everything of scope number *scope* is removed. Such a number is never used again."""
    connection.execute("INSERT INTO dropped_scopes VALUES (?)", (scope,))


def revive(connection: sqlite3.Connection, scope: int, ino: int, numbers: Iterable[int]) -> None:
    """Take the chunks *numbers* of inode *ino* out of all notes, because they are about to be written again."""
    for first, last in _ranges(numbers):
        notes = connection.execute(
            "SELECT first, last FROM dropped_chunks WHERE scope = ? AND ino = ? AND first <= ? AND last >= ?",
            (scope, ino, last, first),
        ).fetchall()
        for note_first, note_last in notes:
            connection.execute(_UNNOTE, (scope, ino, note_first))
            if note_first < first:
                connection.execute(_NOTE, (scope, ino, note_first, first - 1))
            if last < note_last:
                connection.execute(_NOTE, (scope, ino, last + 1, note_last))


def delete_chunks(connection: sqlite3.Connection, scope: int) -> bool:
    """Delete a slice of the removed chunks of scope number *scope*. Return whether there was anything to do."""
    note = connection.execute(
        "SELECT ino, first, last FROM dropped_chunks WHERE scope = ? LIMIT 1", (scope,)
    ).fetchone()
    if note is None:
        return False
    ino, first, last = note
    if connection.execute(_DROP_SLICE, (scope, ino, first, last, SLICE)).rowcount < SLICE:
        connection.execute(_UNNOTE, (scope, ino, first))
    return True


def delete_scopes(connection: sqlite3.Connection) -> bool:
    """Delete a slice of a removed scope. Return whether there was anything to do."""
    note = connection.execute("SELECT scope FROM dropped_scopes LIMIT 1").fetchone()
    if note is None:
        return False
    for statement in _DROP_OF_SCOPE:
        if connection.execute(statement, {"scope": note[0], "chunks": SLICE, "small": _SMALL_ROWS}).rowcount:
            return True
    connection.execute("DELETE FROM dropped_scopes WHERE scope = ?", note)
    return True


def _ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each run of consecutive *numbers*."""
    ordered = sorted(numbers)
    if ordered and ordered[-1] - ordered[0] + 1 == len(ordered):  # quick for many, because they are different numbers
        yield ordered[0], ordered[-1]
        return
    first = 0
    for after, number in enumerate(ordered, 1):
        if after == len(ordered) or ordered[after] != number + 1:
            yield ordered[first], number
            first = after
