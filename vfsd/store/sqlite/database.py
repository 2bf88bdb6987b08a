"""The SQLite file: opening it, waiting while it is locked, and keeping its write-ahead log short. It knows no scopes.

Several daemons may share one file. SQLite itself never waits for a lock here, because its time-out would block the
event loop. A caller that finds the file locked sleeps in trio and tries again.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import trio

from vfsd.errors import FormatTooNew, StoreError, StoreFull, StoreRefused, StoreUnreachable, clause
from vfsd.store.sqlite.errors import is_locked, translated
from vfsd.store.sqlite.files import OpenFiles, open_descriptors
from vfsd.store.sqlite.rows import SCHEMA

T = TypeVar("T")

_log = logging.getLogger(__name__)

_APPLICATION_ID = 0x76667364
"""Identifies a file of vfsd: the bytes "vfsd" (see PRAGMA application_id)."""

_WHOSE_FILE = (
    "SELECT application_id, user_version, (SELECT COUNT(*) FROM sqlite_schema)"
    " FROM pragma_application_id, pragma_user_version"
)
"""One statement, so all three are of one moment: another process may be creating the tables."""

_LAYOUT = 2
"""Version of the tables, kept in PRAGMA user_version. The format of the records has its own version, per scope."""

_LOG_PAGES = 4000
"""The number of pages in the log after which a commit itself checkpoints it, if no thread has done that before."""

_RESERVE = 32 << 20
"""The free space (bytes) on the disk that is kept for changes that free space. They need some first: the log may grow
to its limit, and the file by the same size."""

_FIRST_DELAY, _LONGEST_DELAY = 0.001, 0.02
"""The delays (s) between two attempts on a locked file: the first, and the limit up to which it doubles."""

_OPEN_ATTEMPTS = 5

_LOCK_SECONDS = 1.0
"""How long a thread waits for a lock, for example while another process recovers the log of a killed one."""

_PAUSE = 0.002
"""Time (s) between two slices of a long work, about as long as a slice takes."""

_PRAGMAS = (
    "PRAGMA synchronous = NORMAL",  # a commit survives the daemon's end; flush_log() makes it survive the host's
    f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}",
    f"PRAGMA journal_size_limit = {_LOG_PAGES * 4096}",  # a long read makes the log grow: shrink it afterwards
    "PRAGMA secure_delete = OFF",  # Debian's default overwrites deleted data with zeros
)


class Database:
    """The file at *path* (absolute). *timeout* is how long (s) to wait while another process locks it."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self.label = f"sqlite:{path}"
        self._timeout = timeout
        self._connection: sqlite3.Connection | None = None
        self._files: OpenFiles | None = None
        self._fault: str | None = None
        self._saved_log = False

    # --- using it

    def exists(self) -> bool:
        """Whether the file exists. Raises StoreUnreachable if its directory is missing or not readable.

        The same for a directory in its place.
        """
        try:
            if self.path.is_dir():
                raise self._error(StoreUnreachable, "it is a directory; name a file in it")
            if self.path.parent.is_dir():
                return self.path.exists()
        except PermissionError:
            raise self._error(StoreUnreachable, "this user may not look into its directory") from None
        raise self._error(StoreUnreachable, f"there is no directory {self.path.parent}; create it first")

    async def run(self, action: Callable[[sqlite3.Connection], T], *, create: bool = False) -> T:
        """Call *action* with the connection for writing, and return its result. Raises StoreError.

        The file is opened if necessary; *create* allows to create it. While the file is locked, *action* is called
        again, so it must do everything or nothing.
        """
        return await self._retry_while_locked(lambda: self._run(action, create=create))

    def _run(self, action: Callable[[sqlite3.Connection], T], *, create: bool) -> T:
        connection, files = self._writable(create=create)
        result = action(connection)
        files.note_commit()
        return result

    async def run_in_thread(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """As :meth:`run`, but the event loop goes on meanwhile: for what takes long."""
        await self.open()
        self.raise_if_tampered(by_path=True)
        result = await trio.to_thread.run_sync(self.call_apart, action, self._timeout)
        if self._files is not None:
            self._files.note_commit()
        return result

    def call_apart(self, action: Callable[[sqlite3.Connection], T], patience: float = _LOCK_SECONDS) -> T:
        """Call *action* with a connection of its own, in a thread of the caller, which may wait for the disk.

        It waits for a lock for *patience* seconds. Raises StoreError.
        """
        with self.translating_errors(), closing(self._open(patience=patience)) as connection:
            fault = None if self._files is None else self._files.moved_fault()
            if fault is not None:  # the connection may have opened another file
                raise self._error(StoreUnreachable, fault)
            return action(connection)

    async def run_in_slices(self, action: Callable[[sqlite3.Connection], bool]) -> None:
        """Call *action* again and again until it returns False. Others commit between two calls. Raises StoreError."""
        while await self.run(action):
            await self.pause()

    async def pause(self) -> None:
        """Let others commit, in this process and elsewhere."""
        await trio.sleep(_PAUSE)

    async def open(self) -> None:
        """Open the file, if it is not open. Raises StoreError, for example if the file is not vfsd's."""
        await self._retry_while_locked(lambda: self._writable(create=False))

    async def snapshot(self) -> sqlite3.Connection:
        """Return a new connection that sees the file as it is at this moment. The caller must close it."""
        return await self._retry_while_locked(self._snapshot)

    def close(self) -> None:
        """Close the connection. SQLite checkpoints and removes the log when the last connection to the file closes."""
        if self._connection is not None:
            self._connection.close()
            self._connection = self._files = None

    @contextmanager
    def translating_errors(self) -> Iterator[None]:
        """Turn an SQLite error from the block into a StoreError."""
        try:
            yield
        except sqlite3.Error as error:
            raise translated(error, self.label) from error

    async def _retry_while_locked(self, attempt: Callable[[], T]) -> T:
        """Call *attempt* and return its result. Repeat that while the file is locked, until the time-out.

        Raises StoreError.
        """
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

    def _writable(self, *, create: bool) -> tuple[sqlite3.Connection, OpenFiles]:
        """Return the connection for writing and its files. Raises StoreUnreachable: see :meth:`raise_if_tampered`."""
        if self._connection is None or self._files is None:
            self._connection, self._files = self._open_watched(create=create)
        self.raise_if_tampered()
        return self._connection, self._files

    def _open_watched(self, *, create: bool) -> tuple[sqlite3.Connection, OpenFiles]:
        """Return a new connection and its files.

        SQLite removes the log when the last connection closes. If somebody does that at this moment, open again.
        """
        attempts_left = _OPEN_ATTEMPTS
        while True:
            before = open_descriptors()
            connection = self._open(create=create)
            try:
                return connection, OpenFiles(connection, os.fspath(self.path), before)
            except OSError as error:
                connection.close()
                attempts_left -= 1
                if not attempts_left:
                    raise self._error(
                        StoreUnreachable, f"its files cannot be looked at: {clause(error)}; try again"
                    ) from error

    @property
    def notices_writes(self) -> bool:
        """Whether a write of another program to the database file is noticed: see :meth:`OpenFiles.notices_writes`."""
        return self._files is not None and self._files.notices_writes

    def raise_if_tampered(self, *, by_path: bool = False) -> None:
        """Raise StoreUnreachable if another program moved, removed or overwrote one of the files in use.

        Commits to them would be lost. For *by_path* see :meth:`OpenFiles.fault`.
        """
        fault = None if self._files is None else self._files.fault(by_path=by_path)
        if fault != self._fault:
            self._fault = fault
            _log.error("store %s: %s", self.label, fault or "its files are in place again")
        if fault is not None:
            self._save_log()
            raise self._error(StoreUnreachable, fault)

    def _save_log(self) -> None:
        """Copy a log that was removed into the database file, once: the end of this process would lose its content.

        A checkpoint that is under way in a thread prevents that: then the next call copies.
        The copy waits for the disk, here in the event loop, because no new connection can open the removed log.
        """
        if self._connection is None or self._files is None or self._saved_log or not self._files.log_can_be_saved():
            return
        with self.translating_errors():
            busy, frames, copied = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if not busy and frames == copied:
            self._saved_log = True
            _log.warning("%s is gone; its commits were copied into %s", self._files.log, self.path)

    def _snapshot(self) -> sqlite3.Connection:
        connection = self._open()
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT COUNT(*) FROM scopes").fetchone()  # the first read takes the snapshot, not BEGIN
        except BaseException:
            connection.close()
            raise
        return connection

    def _open(self, *, create: bool = False, patience: float = 0) -> sqlite3.Connection:
        """Return a new connection to the file. An empty file gets the tables.

        It waits for a lock for *patience* seconds: only a thread may wait.
        """
        url = f"{self.path.as_uri()}?mode={'rwc' if create else 'rw'}"
        connection = sqlite3.connect(url, uri=True, timeout=patience, isolation_level=None)
        try:
            self._configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _configure(self, connection: sqlite3.Connection) -> None:
        layout = self._layout(connection)
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise self._error(StoreRefused, f"write-ahead logging does not work there (journal mode {mode})")
        if layout < _LAYOUT:
            with transaction(connection):
                if self._layout(connection) < _LAYOUT:  # otherwise another process was faster
                    _create_tables(connection)

    def _layout(self, connection: sqlite3.Connection) -> int:
        """Return the layout of the tables, 0 for an empty file.

        Raises StoreRefused for the file of another program, and FormatTooNew.
        """
        application, layout, tables = connection.execute(_WHOSE_FILE).fetchone()
        if not tables and not application:
            return 0
        if application != _APPLICATION_ID:
            raise self._error(StoreRefused, "it is the database of another program; name another file")
        if layout > _LAYOUT:
            raise self._error(FormatTooNew, f"it has layout {layout}, and this vfsd knows {_LAYOUT}; upgrade vfsd")
        return int(layout)

    # --- the disk below it

    async def checkpoint(self) -> None:
        """Move the log into the file, as far as no reader prevents it. Raises StoreError."""
        self.raise_if_tampered(by_path=True)
        await trio.to_thread.run_sync(self.call_apart, _checkpoint)
        if self._files is not None:
            self._files.note_checkpoint()

    async def flush_log(self) -> None:
        """Flush the log: then all commits survive a crash of the host. Raises StoreUnreachable."""
        self.raise_if_tampered(by_path=True)
        if self._files is not None:
            await trio.to_thread.run_sync(self._flush_log, self._files)
        self.raise_if_tampered(by_path=True)

    def _flush_log(self, files: OpenFiles) -> None:
        try:
            # Closing a second descriptor drops a process's POSIX locks on a file. SQLite locks the database file and
            # the index, but not the log, so a second descriptor of the log is safe.
            with Path(files.log).open("rb") as log:
                os.fsync(log.fileno())
                flushed = files.is_log(log.fileno())
        except OSError as error:
            raise self._error(StoreUnreachable, f"its log cannot be flushed: {error.strerror}") from error
        if not flushed:
            raise self._error(StoreUnreachable, f"{files.log} was replaced while it is in use")

    def total_and_free(self, connection: sqlite3.Connection | None) -> tuple[int, int]:
        """Return the size of the file's disk, and how much content can still be written to it, in bytes."""
        disk = os.statvfs(self.path.parent)
        inside = 0 if connection is None else _free_page_bytes(connection)
        return disk.f_blocks * disk.f_frsize, max(0, disk.f_bavail * disk.f_frsize + inside - _RESERVE)

    def raise_if_full(self, connection: sqlite3.Connection) -> None:
        """Raise StoreFull if only the reserve is left: it is kept for changes that free space."""
        disk = os.statvfs(self.path.parent)
        tells_its_size = disk.f_blocks > 0  # some file systems report 0
        if disk.f_bavail * disk.f_frsize > _RESERVE or not tells_its_size:
            return
        if not self.total_and_free(connection)[1]:
            raise self._error(StoreFull, f"less than {_RESERVE >> 20} MiB are free on its disk; free some space")

    def _error(self, kind: type[StoreError], why: str) -> StoreError:
        return kind(f"store {self.label}: {why}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block as one transaction: all of it is stored, or nothing. No other process writes at the same time."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some SQLite errors end the transaction themselves
            connection.execute("ROLLBACK")
        raise


def _checkpoint(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables that are missing, all of them in an empty file, and mark the file as vfsd's."""
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {_LAYOUT}")


def _free_page_bytes(connection: sqlite3.Connection) -> int:
    """Return the size (bytes) of the unused pages in the file."""
    (pages,) = connection.execute("PRAGMA freelist_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    free: int = pages * size
    return free
