"""From SQLite errors to the project's errors: one table by result code, with a remedy for each."""

import sqlite3

from vfsd.errors import ScopeDamaged, StoreError, StoreFull, StoreReadOnly, StoreRefused, StoreUnreachable, clause

_LOCKED = (StoreUnreachable, "another process has locked it; 'fuser FILE' shows which processes have it open")
_RIGHTS = "make the file and its directory writable for this user"

_MEANING: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_FULL: (StoreFull, "free some space on its disk"),
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
"""By primary result code (https://sqlite.org/rescode.html). Every other code means StoreRefused."""


def is_locked(error: sqlite3.Error) -> bool:
    """Whether *error* says that another process has locked the file, so that another attempt makes sense."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def translated(error: sqlite3.Error, label: str) -> StoreError:
    """Return the StoreError for *error* of the store *label*. Raises *error* itself if it does not come from SQLite."""
    code = _code(error)
    if code is None:
        raise error  # Python's sqlite3 module was used in a wrong way: a bug here
    kind, remedy = _MEANING.get(code, (StoreRefused, f"SQLite calls this {error.sqlite_errorname}"))
    return kind(f"store {label}: {clause(error)}; {remedy}")


def _code(error: sqlite3.Error) -> int | None:
    extended: int | None = getattr(error, "sqlite_errorcode", None)
    return None if extended is None else extended & 0xFF
