"""The file of a daemon's log: who may read it, how long it may grow, and that the daemon follows a rotation.

A log must never fill the disk. So a file that is long enough gets another name, in place of the one before it, and the
daemon goes on in a new file. Somebody else may rotate too, as :manpage:`logrotate(8)` does.
"""

import contextlib
import logging
import logging.handlers
import os
import threading
import time
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path

from vfsd.errors import UsageError

_MODE = 0o640
_FOLLOW_SECONDS = 1.0
_BEFORE = ".1"
"""What the name of the file before this one ends with."""


def create_log_file(path: str, *, parents: bool) -> bool:
    """Create the log file now, while an error can still be printed. Return whether it is new. Raises UsageError.

    With *parents* the directories above it are created too: those of the default, never those that somebody typed.
    """
    try:
        if parents:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        is_new = not os.path.lexists(path)
        os.close(_opener(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT))
    except OSError as error:
        raise UsageError(
            f"cannot write the log file {path}: {error.strerror}; choose another with --log-file"
        ) from None
    return is_new


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, _MODE)


class LogFile(logging.handlers.WatchedFileHandler):
    """A log file, readable by its owner and group only. After a rotation the daemon goes on in a new file.

    A file of *most* bytes is renamed (0: none is). With *take_streams* the descriptors 1 and 2 lead to the same file,
    also after a rotation: libfuse, a crash of the interpreter and the dump of threads write there. A record notices a
    rotation. A daemon may log nothing for hours, so a thread looks every second too.
    """

    def __init__(self, path: str, most: int, *, take_streams: bool) -> None:
        self._most = most
        self._take_streams = take_streams
        super().__init__(path, encoding="utf-8", errors="backslashreplace")
        if take_streams:
            threading.Thread(target=self._follow, name="log rotation", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Write *record*, and begin a new file if this one is long enough now."""
        super().emit(record)
        with contextlib.suppress(OSError):  # the next record, or the next look, tries again
            self._rotate_if_long()

    def _rotate_if_long(self) -> None:
        """Rename the file if it has *most* bytes. If another daemon logs there too, the first of them does it."""
        if not self._most or self.stream is None:
            return
        ours, path = os.fstat(self.stream.fileno()), Path(self.baseFilename)
        if ours.st_size >= self._most and os.path.samestat(ours, path.stat()):
            path.replace(self.baseFilename + _BEFORE)
            self.reopenIfNeeded()

    def _open(self) -> TextIOWrapper:
        stream = open(self.baseFilename, "a", encoding=self.encoding, errors=self.errors, opener=_opener)  # noqa: SIM115 (a Path has no opener)
        if self._take_streams:
            for descriptor in (1, 2):
                os.dup2(stream.fileno(), descriptor)
        return stream

    def _follow(self) -> None:
        while True:
            time.sleep(_FOLLOW_SECONDS)
            with self._locked(), contextlib.suppress(OSError):  # the next look, or the next record, tries again
                self.reopenIfNeeded()
                self._rotate_if_long()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.acquire()
        try:
            yield
        finally:
            self.release()
