"""Whether the three files of an open database are still the ones that SQLite has open, with SQLite's content.

An SQLite database is the file, its write-ahead log (``-wal``) and the index of the log (``-shm``). SQLite does not
notice when somebody removes, replaces or overwrites one of them: its commits go on to succeed, and nobody can ever read
them. So before each commit, and at each fsync, the files are compared with what SQLite has open. That takes some
microseconds.

- A path must lead to the file (device and inode number) that is open. A file that was moved may be moved back.
- The last frame of the log must carry the checksum that the index has. The checksum of a frame covers all frames before
  it, so a log that was truncated or overwritten differs. The index and the log are described in
  https://sqlite.org/walformat.html and https://sqlite.org/fileformat2.html.
- Only a checkpoint writes to the database file, and each checkpoint is noted in the index. A new modification time
  without a new note means that another program wrote to it. Such damage stays: commits fail until the next mount.

This module never opens one of the files: closing a second descriptor would drop SQLite's locks (POSIX locks belong to a
process and a file). It reads through SQLite's own descriptors.
"""

import os
import sqlite3
import struct
import time
from contextlib import suppress
from typing import NamedTuple

_INDEX_SIZE = 132
_INDEX = struct.Struct("=12x?xHI4x2I8s")
"""Of the index: whether it is valid, page size, number of frames, checksum of the last frame, salt of the log."""
_IS_VALID = 12
_BACKFILLED_AT, _ATTEMPTED_AT = 96, 128
"""Where the index notes how many frames are in the database file, and how many a checkpoint began to copy."""
_BACKFILLED = struct.Struct("=I")
_CHANGING = slice(0, 100)
"""The part of the index that differs after each commit and each checkpoint."""

_PATHS_EVERY = 0.001
"""Time (s) after which all paths are asked again."""

_LOG_HEADER, _FRAME_HEADER = 32, 24
_CHECKSUM = struct.Struct(">2I")


class _Files(NamedTuple):
    """What the three paths lead to at this moment. *shared* is the index of the log, memory that processes share."""

    database: os.stat_result
    log: os.stat_result
    shared: os.stat_result


class OpenFiles:
    """The files of a *connection* that has just been opened for *path*.

    *before* are the descriptors that this process had before. Raises OSError if they cannot be determined, for example
    because a file was replaced at that moment.
    """

    def __init__(self, connection: sqlite3.Connection, path: str, before: frozenset[int]) -> None:
        real = connection.execute("PRAGMA database_list").fetchone()[2]  # SQLite follows symbolic links
        self.log = f"{real}-wal"
        self._paths = path, self.log, f"{real}-shm"
        found = self._stat()
        self._identities = _identities(found)
        descriptors = open_descriptors()
        self._log_descriptor = _having(found.log, descriptors - before)
        self._index_descriptor = _having(found.shared, descriptors)  # all connections of a process share it
        self._in_place = found.database.st_dev, found.database.st_ino
        self._paths_due = 0.0
        self._index_length = found.shared.st_size
        self._checkpoints = b""
        self._written: tuple[int, int] | None = None
        self._new_log_follows = False
        self._damage: str | None = None
        self.note_checkpoint()

    @property
    def notices_writes(self) -> bool:
        """Whether the index says that no checkpoint is under way, so that others may not write to the database file.

        After a crash it does not say that until the next checkpoint has ended.
        """
        return bool(self._checkpoints)

    def fault(self, *, by_path: bool = False) -> str | None:
        """Return what is wrong with the files, and what to do; None if nothing is wrong.

        *by_path* asks where each path leads, even if that was asked less than a millisecond ago.
        """
        try:
            found = self._look(by_path=by_path)
            if found is not None and self._damage is None:
                self._damage = self._index_damage(found) or self._content_damage(found)
        except OSError:
            found = None
        if found is None:
            return self.moved_fault() or _moved_message(self._paths[0])
        return self._damage

    def _look(self, *, by_path: bool) -> _Files | None:
        """Return the status of the files, None if a path leads elsewhere. Raises OSError if it leads nowhere.

        Within a millisecond the log and the index are asked by their descriptors, at a third of the price: a file that
        was removed or replaced has no name left. Only one that was renamed waits for the millisecond.
        """
        now = time.monotonic()
        if now < self._paths_due and not by_path:
            database = os.stat(self._paths[0])
            log, shared = os.fstat(self._log_descriptor), os.fstat(self._index_descriptor)
            if (database.st_dev, database.st_ino) == self._in_place and log.st_nlink and shared.st_nlink:
                return _Files(database, log, shared)
        found = self._stat()
        if _identities(found) != self._identities:
            return None
        self._paths_due = now + _PATHS_EVERY
        return found

    def moved(self) -> str | None:
        """Return the first path that does not lead to the file that is open."""
        for path, device, number in zip(self._paths, self._identities[::2], self._identities[1::2], strict=True):
            try:
                found = os.stat(path)
            except OSError:
                return path
            if (found.st_dev, found.st_ino) != (device, number):
                return path
        return None

    def moved_fault(self) -> str | None:
        """Return what is wrong if a path does not lead to the file that is open, otherwise None. A thread may ask."""
        path = self.moved()
        return None if path is None else _moved_message(path)

    def is_log(self, descriptor: int) -> bool:
        """Whether *descriptor* is an open descriptor of the log that SQLite writes."""
        found = os.fstat(descriptor)
        return (found.st_dev, found.st_ino) == self._identities[2:4]

    def log_can_be_saved(self) -> bool:
        """Whether the log has lost its path, but SQLite can still read it, and copy it into the database file."""
        return self.moved() == self.log and self._damage is None and self._log_damage(self._read_index()) is None

    def note_commit(self) -> None:
        """Call this after a commit: it may have begun the log anew, if the whole log was in the database file."""
        if self._new_log_follows:
            self.note_checkpoint()

    def note_checkpoint(self) -> None:
        """Remember when the database file was written. Call this after a checkpoint.

        Otherwise the next look would take a write of another program for a write of the checkpoint.
        """
        index = self._read_index()
        if _checkpoints(index) != self._checkpoints:
            with suppress(OSError):  # the path leads nowhere: the next look tells
                self._remember(index)

    def _stat(self) -> _Files:
        database, log, index = self._paths
        return _Files(os.stat(database), os.stat(log), os.stat(index))

    def _read_index(self) -> bytes:
        """Return the beginning of the index. It is shorter if somebody truncated it: zeros then stand for the rest."""
        return os.pread(self._index_descriptor, _INDEX_SIZE, 0).ljust(_INDEX_SIZE, b"\0")

    def _index_damage(self, found: _Files) -> str | None:
        """Whether the index was truncated. Then it gets its length back.

        SQLite maps the index into memory, and access beyond the end of the file would kill this process (SIGBUS).
        SQLite finds zeros in it, and makes the index anew from the log.
        """
        if found.shared.st_size >= self._index_length:
            self._index_length = found.shared.st_size
            return None
        os.ftruncate(self._index_descriptor, self._index_length)
        return _overwritten_message(self._paths[2])

    def _content_damage(self, found: _Files) -> str | None:
        """Compare the log and the database file with the index.

        Other daemons may commit meanwhile. So a difference counts only if the index stays the same.
        """
        while True:
            index = self._read_index()
            if not index[_IS_VALID]:
                return self._index_damage(self._stat())
            damage = self._log_damage(index) or self._database_damage(index, found.database)
            if damage is None or self._read_index()[_CHANGING] == index[_CHANGING]:
                return damage
            found = self._stat()

    def _log_damage(self, index: bytes) -> str | None:
        is_valid, page_size, frames, first, second, salt = _INDEX.unpack_from(index)
        self._new_log_follows = _BACKFILLED.unpack_from(index, _BACKFILLED_AT)[0] == frames
        if not is_valid or not frames or index[:48] != index[48:96]:
            return None  # an empty log; or SQLite is about to write the index, or to make it anew from the log
        last = _LOG_HEADER + (frames - 1) * (_FRAME_HEADER + _bytes_in_page(page_size))
        frame = os.pread(self._log_descriptor, _FRAME_HEADER, last)
        return None if frame[8:] == salt + _CHECKSUM.pack(first, second) else _overwritten_message(self.log)

    def _database_damage(self, index: bytes, found: os.stat_result) -> str | None:
        """Compare the time in *found* with the remembered one. *index* was read later.

        So it shows a checkpoint that wrote before *found*: SQLite notes the beginning of a checkpoint before it writes.
        """
        if _checkpoints(index) != self._checkpoints:
            self._remember(index)
        elif (found.st_mtime_ns, found.st_size) != self._written:
            return _overwritten_message(self._paths[0])
        return None

    def _remember(self, index: bytes) -> None:
        """Remember when the database file was written, unless a checkpoint is under way.

        A checkpoint notes its end after its last write. So the time is final only if *index*, which was read before,
        and the index afterwards agree that no checkpoint is under way.
        """
        self._checkpoints = b""
        found = os.stat(self._paths[0])
        idle = index[_BACKFILLED_AT : _BACKFILLED_AT + 4] == index[_ATTEMPTED_AT : _ATTEMPTED_AT + 4]
        if idle and _checkpoints(self._read_index()) == _checkpoints(index):
            self._checkpoints = _checkpoints(index)
            self._written = found.st_mtime_ns, found.st_size


def open_descriptors() -> frozenset[int]:
    """Return the open descriptors of this process. Raises OSError."""
    with os.scandir("/proc/self/fd") as listed:
        found = [int(each.name) for each in listed]
    # The listing had a descriptor itself, which is free again.
    return frozenset(each for each in found if _status(each) is not None)


def _status(descriptor: int) -> os.stat_result | None:
    try:
        return os.fstat(descriptor)
    except OSError:
        return None


def _having(wanted: os.stat_result, descriptors: frozenset[int]) -> int:
    """Return the descriptor among *descriptors* that is the file *wanted*. Raises FileNotFoundError."""
    for descriptor in descriptors:
        found = _status(descriptor)
        if found is not None and (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
            return descriptor
    raise FileNotFoundError("a file was replaced while SQLite opened it")


def _identities(found: _Files) -> tuple[int, ...]:
    """Return device and inode number of each file."""
    database, log, shared = found
    return database.st_dev, database.st_ino, log.st_dev, log.st_ino, shared.st_dev, shared.st_ino


def _checkpoints(index: bytes) -> bytes:
    """Return what the index notes of checkpoints: salt of the log, number of frames copied, and attempted."""
    return index[32:40] + index[_BACKFILLED_AT : _BACKFILLED_AT + 4] + index[_ATTEMPTED_AT : _ATTEMPTED_AT + 4]


def _bytes_in_page(noted: int) -> int:
    return 65536 if noted == 1 else noted


def _moved_message(path: str) -> str:
    return f"{path} was moved, removed or replaced while it is in use; move it back, or unmount and mount again"


def _overwritten_message(path: str) -> str:
    return (
        f"another program wrote to {path} while it is in use; unmount, restore a whole backup without its -wal and -shm"
        " files if the scope is damaged, and mount again"
    )
