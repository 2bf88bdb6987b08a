"""How a daemon tells the world how far it has come: notes, progress, readiness, failure.

In the foreground the world is the log and systemd. A detached daemon has a pipe to the command that started it, so
that its error is the command's error, word for word.
"""

import json
import logging
import os
import socket
from collections.abc import Callable
from typing import Any

from vfsd.config import notify_socket

_log = logging.getLogger(__name__)


class StartupReporter:
    """Tells the log, and systemd if it listens (:manpage:`sd_notify(3)`).

    *on_ready* is called when the mount answers.
    """

    def __init__(self, on_ready: Callable[[], None]) -> None:
        self._on_ready = on_ready

    def note(self, text: str) -> None:
        """Say something the operator should know and need not act on."""
        _log.info("%s", text)

    def warn(self, text: str) -> None:
        """Say something the operator should act on some day."""
        _log.warning("%s", text)

    def progress(self, done: int, total: int) -> None:
        """Say how many records of how many have been read."""

    def ready(self, text: str) -> None:
        """Say that the mount answers."""
        self._on_ready()
        _log.info("%s", text)
        _notify_systemd(f"READY=1\nSTATUS={text}")

    def stopping(self) -> None:
        """Say that the end has begun."""
        _notify_systemd("STOPPING=1")


class PipeReporter(StartupReporter):
    """Tells the log, and a command that reads the other end of the pipe *descriptor* as a JSON object a line."""

    def __init__(self, descriptor: int, on_ready: Callable[[], None]) -> None:
        super().__init__(on_ready)
        self._descriptor = descriptor

    def note(self, text: str) -> None:
        """See :meth:`Herald.note`."""
        super().note(text)
        self._tell(note=text)

    def warn(self, text: str) -> None:
        """See :meth:`Herald.warn`."""
        super().warn(text)
        self._tell(warning=text)

    def progress(self, done: int, total: int) -> None:
        """See :meth:`Herald.progress`."""
        self._tell(done=done, total=total)

    def ready(self, text: str) -> None:
        """See :meth:`Herald.ready`; the pipe ends here."""
        super().ready(text)
        self._tell(ready=text)
        os.close(self._descriptor)
        self._descriptor = -1

    def failed(self, text: str, status: int) -> None:
        """Say what ended the daemon before it was ready, and the exit status for that."""
        self._tell(error=text, status=status)

    def _tell(self, **message: Any) -> None:
        if self._descriptor >= 0:
            try:
                os.write(self._descriptor, json.dumps(message).encode() + b"\n")
            except BrokenPipeError:  # the command was interrupted; the mount comes up all the same
                self._descriptor = -1


def _notify_systemd(message: str) -> None:
    address = notify_socket()
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notifying:
            notifying.connect(address)
            notifying.sendall(message.encode())
    except OSError as error:
        _log.warning("cannot tell systemd at %s: %s", address, error.strerror)
