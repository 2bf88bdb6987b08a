"""What SQLite's errors mean here: one table from result codes to the project's errors, with a remedy each."""

import sqlite3

from vfsd.errors import ScopeDamaged, StoreError, StoreFull, StoreReadOnly, StoreRefused, StoreUnreachable

_LOCKED = (StoreUnreachable, "another process holds it locked; 'fuser FILE' names who has it open")
_RIGHTS = "make the file and its directory writable for this user"

_MEANING: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_FULL: (StoreFull, "free some space where it lies"),
    sqlite3.SQLITE_READONLY: (StoreReadOnly, _RIGHTS),
    sqlite3.SQLITE_PERM: (StoreRefused, _RIGHTS),
    sqlite3.SQLITE_IOERR: (StoreUnreachable, "see the kernel's log for trouble with the disk"),
    sqlite3.SQLITE_CANTOPEN: (StoreUnreachable, "see that this user may read and write the file and its directory"),
    sqlite3.SQLITE_CORRUPT: (
        ScopeDamaged,
        "restore it from a backup, or save what is left with 'sqlite3 FILE .recover'",
    ),
    sqlite3.SQLITE_NOTADB: (StoreRefused, "name another file, or restore this one from a backup"),
}
"""By primary result code (https://sqlite.org/rescode.html)."""


def is_locked(error: sqlite3.Error) -> bool:
    """Whether *error* says that another process holds the file: worth another attempt."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def translated(error: sqlite3.Error, label: str) -> StoreError:
    """Return what *error* means for the store called *label*. Raises *error* itself if it is no answer of SQLite's."""
    code = _code(error)
    if code is None:
        raise error  # the module was misused: a bug, and no trouble of the store's
    kind, remedy = _MEANING.get(code, (StoreRefused, f"SQLite calls this {error.sqlite_errorname}"))
    return kind(f"store {label}: {error}; {remedy}")


def _code(error: sqlite3.Error) -> int | None:
    extended: int | None = getattr(error, "sqlite_errorcode", None)
    return None if extended is None else extended & 0xFF
