"""The SQLite file: opening it, waiting while others hold it, keeping its log short. It knows no scopes.

Several daemons may share one file. SQLite never waits here (its own time-out would stop the event loop): whoever
finds the file locked sleeps in trio and tries again.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import trio

from vfsd.errors import FormatTooNew, StoreError, StoreFull, StoreRefused, StoreUnreachable
from vfsd.store.sqlite.errors import is_locked, translated
from vfsd.store.sqlite.rows import SCHEMA

T = TypeVar("T")

_APPLICATION_ID = 0x76667364
"""Marks the file as ours ("vfsd"); see PRAGMA application_id."""

_LAYOUT = 1
"""Version of the tables, kept in PRAGMA user_version. The records in them have a version of their own, per scope."""

_LOG_PAGES = 4000
"""Pages in the log after which a commit takes it into the file itself, should no thread have come to that."""

_RESERVE = 32 << 20
"""Bytes of the disk left to changes that free some: the log may grow to its most, and the file by as much."""

_FIRST_DELAY, _LONGEST_DELAY = 0.001, 0.02
"""Seconds between two attempts on a locked file."""

_PRAGMAS = (
    "PRAGMA synchronous = NORMAL",  # a commit survives the daemon; flush_log() makes it survive the host
    f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}",
    f"PRAGMA journal_size_limit = {_LOG_PAGES * 4096}",  # a long reader lets the log grow: give that back
    "PRAGMA secure_delete = OFF",  # Debian's default writes zeros over all that is replaced
)


class Database:
    """The file at *path* (absolute). *timeout* is how long to wait for it while others hold it, in seconds."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self.label = f"sqlite:{path}"
        self._timeout = timeout
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    # --- using it

    def exists(self) -> bool:
        """Whether there is a file. Raises StoreUnreachable if there cannot be one."""
        try:
            if self.path.parent.is_dir():
                return self.path.exists()
        except PermissionError:
            raise self._error(StoreUnreachable, "this user may not look into its directory") from None
        raise self._error(StoreUnreachable, f"there is no directory {self.path.parent}; create it first")

    async def run(self, action: Callable[[sqlite3.Connection], T], *, create: bool = False) -> T:
        """Return what *action* does with the connection for writing, opened if need be.

        While the file is locked, *action* is tried again: it must be whole or nothing. Raises StoreError.
        """
        return await self._retry_while_locked(lambda: action(self._writable(create=create)))

    async def open(self) -> None:
        """Open the file, unless it is open. Raises StoreError, above all if it is no file of ours."""
        await self._retry_while_locked(lambda: self._writable(create=False))

    async def snapshot(self) -> sqlite3.Connection:
        """Return another connection, which goes on seeing the file as it is now. The caller closes it."""
        return await self._retry_while_locked(self._snapshot)

    def close(self) -> None:
        """Close the connection; whoever is the last to close takes the log into the file, and removes it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def translating_errors(self) -> Iterator[None]:
        """Raise the StoreError that an SQLite error inside stands for."""
        try:
            yield
        except sqlite3.Error as error:
            raise translated(error, self.label) from error

    async def _retry_while_locked(self, attempt: Callable[[], T]) -> T:
        """Return what *attempt* does; try again while the file is locked and there is time."""
        deadline, delay = trio.current_time() + self._timeout, _FIRST_DELAY
        while True:
            try:
                return attempt()
            except sqlite3.Error as error:
                if not is_locked(error) or trio.current_time() >= deadline:
                    raise translated(error, self.label) from error
            await trio.sleep(delay)
            delay = min(2 * delay, _LONGEST_DELAY)

    # --- opening it

    def _writable(self, *, create: bool) -> sqlite3.Connection:
        """Return the connection for writing. What is written to a file without a name would be lost: refuse that."""
        if self._connection is None:
            self._connection = self._open(create=create)
            self._identity = _identity(self.path)
        elif _identity(self.path) != self._identity:
            raise self._error(StoreUnreachable, "the file in use was moved or removed; move it back")
        return self._connection

    def _snapshot(self) -> sqlite3.Connection:
        connection = self._open()
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT COUNT(*) FROM scopes").fetchone()  # it is reading that takes the snapshot
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self, *, create: bool = False) -> sqlite3.Connection:
        """Return a new connection to the file, which becomes ours if it is new."""
        url = f"{self.path.as_uri()}?mode={'rwc' if create else 'rw'}"
        connection = sqlite3.connect(url, uri=True, timeout=0, isolation_level=None)
        try:
            self._configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _configure(self, connection: sqlite3.Connection) -> None:
        is_new = self._is_new(connection)
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise self._error(StoreRefused, f"write-ahead logging does not work there (journal mode {mode})")
        if is_new:
            with transaction(connection):
                if self._is_new(connection):  # nobody else was faster
                    _create_tables(connection)

    def _is_new(self, connection: sqlite3.Connection) -> bool:
        """Whether the file is empty. Raises StoreRefused if it is another program's, FormatTooNew."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
        if not tables and not application:
            return True
        if application != _APPLICATION_ID:
            raise self._error(StoreRefused, "it is the database of another program; name another file")
        if layout > _LAYOUT:
            raise self._error(FormatTooNew, f"it has layout {layout}, and this vfsd knows {_LAYOUT}; upgrade vfsd")
        return False

    # --- the disk below it

    def checkpoint(self) -> None:
        """Take the log into the file, as far as that disturbs nobody. Waits for the disk: run it in a thread."""
        with self.translating_errors(), closing(self._open()) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def flush_log(self) -> None:
        """Make all commits so far survive the host. Waits for the disk: run it in a thread."""
        try:
            # A second descriptor is safe: closing it would drop the locks on the file itself, but the log has none.
            with Path(f"{self.path}-wal").open("rb") as log:
                os.fsync(log.fileno())
        except FileNotFoundError:
            return  # what was in a log is in the file, and was flushed with it
        except OSError as error:
            raise self._error(StoreUnreachable, f"its log cannot be flushed: {error.strerror}") from error

    def space(self, connection: sqlite3.Connection | None) -> tuple[int, int]:
        """Return the size of the disk the file lies on, and how many bytes of content still find room."""
        disk = os.statvfs(self.path.parent)
        inside = 0 if connection is None else _free_page_bytes(connection)
        return disk.f_blocks * disk.f_frsize, max(0, disk.f_bavail * disk.f_frsize + inside - _RESERVE)

    def raise_if_full(self, connection: sqlite3.Connection) -> None:
        """Raise StoreFull if what is left must be kept for changes that free some."""
        disk = os.statvfs(self.path.parent)
        if disk.f_bavail * disk.f_frsize > _RESERVE or not disk.f_blocks:  # some file systems do not tell
            return
        if not self.space(connection)[1]:
            raise self._error(StoreFull, f"less than {_RESERVE >> 20} MiB are free where it lies; free some space")

    def _error(self, kind: type[StoreError], why: str) -> StoreError:
        return kind(f"store {self.label}: {why}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Make what is done inside happen as a whole, or not at all; nobody else writes meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors of SQLite have already ended it
            connection.execute("ROLLBACK")
        raise


def _create_tables(connection: sqlite3.Connection) -> None:
    """Make an empty file ours."""
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {_LAYOUT}")


def _free_page_bytes(connection: sqlite3.Connection) -> int:
    """Return how many bytes of the file hold nothing any more."""
    (pages,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    free: int = pages * size
    return free


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
