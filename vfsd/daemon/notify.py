"""How a starting daemon reports: notes, warnings, progress of hydration, readiness, failure.

A daemon in the foreground reports to its log and to systemd. A detached daemon also writes to a pipe, whose other end
is read by the command that started it: the command then prints the daemon's own error message.
"""

import json
import logging
import os
import socket
from collections.abc import Callable
from typing import Any

from vfsd.config import notify_socket
from vfsd.printable import printable

_log = logging.getLogger(__name__)


class StartupReporter:
    """Reports to the log, and to systemd if it waits for that (:manpage:`sd_notify(3)`).

    *on_ready* is called when the mount answers. ``has_destroyed`` says that the daemon has destroyed its scope.
    """

    def __init__(self, on_ready: Callable[[], None]) -> None:
        self.has_destroyed = False
        self._on_ready = on_ready

    def note(self, text: str) -> None:
        """Report a fact that needs no action by the operator."""
        _log.info("%s", text)

    def warn(self, text: str) -> None:
        """Report a fact that needs action by the operator, but does not stop the mount."""
        _log.warning("%s", text)

    def progress(self, done: int, total: int) -> None:
        """Report that *done* of *total* records have been read."""

    def ready(self, text: str) -> None:
        """Report that the mount answers."""
        self._on_ready()
        _log.info("%s", text)
        _notify_systemd(f"READY=1\nSTATUS={printable(text)}")

    def stopping(self) -> None:
        """Report that the daemon has begun to end."""
        _notify_systemd("STOPPING=1")


class PipeReporter(StartupReporter):
    """Reports to the pipe *descriptor* too, as one JSON object a line.

    The objects are ``pid`` (of the daemon), ``note``, ``warning`` and ``ready`` with a text, ``done`` with ``total``,
    and ``error`` with ``status``.
    """

    def __init__(self, descriptor: int, on_ready: Callable[[], None]) -> None:
        super().__init__(on_ready)
        self._descriptor = descriptor
        self._send(pid=os.getpid())

    def note(self, text: str) -> None:
        """See :meth:`StartupReporter.note`."""
        super().note(text)
        self._send(note=text)

    def warn(self, text: str) -> None:
        """See :meth:`StartupReporter.warn`."""
        super().warn(text)
        self._send(warning=text)

    def progress(self, done: int, total: int) -> None:
        """See :meth:`StartupReporter.progress`."""
        self._send(done=done, total=total)

    def ready(self, text: str) -> None:
        """See :meth:`StartupReporter.ready`. This is the last message: the pipe is closed."""
        super().ready(text)
        self._send(ready=text)
        os.close(self._descriptor)
        self._descriptor = -1

    def failed(self, text: str, status: int) -> None:
        """Report why the daemon ends before it is ready, and the exit status for that."""
        self._send(error=text, status=status)

    def _send(self, **message: Any) -> None:
        if self._descriptor >= 0:
            try:
                os.write(self._descriptor, json.dumps(message).encode() + b"\n")
            except BrokenPipeError:  # the command was interrupted; the mount is started all the same
                self._descriptor = -1


def _notify_systemd(message: str) -> None:
    address = notify_socket()
    if not address:
        return
    if address.startswith("@"):  # an address in the abstract namespace (unix(7))
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
            connection.connect(address)
            connection.sendall(message.encode())
    except OSError as error:
        _log.warning("cannot tell systemd at %s: %s", address, error.strerror)
