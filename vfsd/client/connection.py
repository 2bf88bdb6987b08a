"""A connection to a daemon's control socket, for a synchronous program. It loads no trio and no store.

A request is never sent twice, because a request without an answer may have been carried out. Nothing is sent to a
daemon of another user, because a request contains content.
"""

import errno
import json
import os
import select
import socket
import struct
from io import BufferedReader
from pathlib import Path
from typing import Any

from vfsd.control import protocol
from vfsd.errors import VfsdError

_CREDENTIALS = struct.Struct("3i")
"""pid, uid, gid of the process that listens (:manpage:`unix(7)`, SO_PEERCRED)."""


class NoAnswer(VfsdError):
    """No daemon listens at the control socket, or its answer did not come in time. *number* is the errno for that.

    EPERM means that the process that listens there belongs to another user.
    """

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


class RequestTooLong(VfsdError):
    """A request is longer than the longest line of the protocol."""


class ControlConnection:
    """A connection to the control socket *address*. It is opened when needed, and again after it has ended.

    Each step (connect, send, receive) may take *timeout* seconds. Only one thread at a time may use it.
    """

    def __init__(self, address: str, timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._replies: BufferedReader | None = None
        self._last_id = 0

    def ask(self, op: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the daemon's reply to *op*. Raises NoAnswer, RequestTooLong."""
        line = protocol.request(self._last_id + 1, op, arguments)
        if len(line) > protocol.LINE_MAX:
            raise RequestTooLong(f"the request has {len(line)} bytes, more than {protocol.LINE_MAX}; use the mount")
        try:
            return self._exchange(line)
        except TimeoutError:
            self.close()
            raise NoAnswer(f"no answer at {self._address} for {self._timeout:g} s", errno.ETIMEDOUT) from None
        except (OSError, ValueError) as error:
            self.close()
            number = getattr(error, "errno", None) or errno.ECONNRESET
            raise NoAnswer(
                f"no answer at {self._address}: {getattr(error, 'strerror', None) or error}", number
            ) from None
        except BaseException:
            self.close()  # interrupted: the reply to this request would be taken for the reply to the next
            raise

    def close(self) -> None:
        """Close the connection, if it is open."""
        for closing in (self._replies, self._socket):
            if closing is not None:
                closing.close()
        self._socket = self._replies = None

    def _exchange(self, line: bytes) -> dict[str, Any]:
        if self._socket is not None and select.select([self._socket], [], [], 0)[0]:
            self.close()  # no request is open, so the only thing to read is the end of the connection
        connection, replies = self._connected()
        self._last_id += 1
        connection.sendall(line)
        answer = replies.readline()
        if not answer.endswith(b"\n"):
            raise ConnectionResetError(errno.ECONNRESET, "the daemon went away")
        reply: dict[str, Any] = json.loads(answer)
        return reply

    def _connected(self) -> tuple[socket.socket, BufferedReader]:
        if self._socket is None or self._replies is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(self._timeout)
            self._socket.connect(self._address)
            _check_peer(self._socket)
            self._replies = self._socket.makefile("rb")
        return self._socket, self._replies


def _check_peer(connection: socket.socket) -> None:
    """Raise PermissionError unless the process that listens belongs to this user or to root."""
    _, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if uid not in {0, os.geteuid()}:
        raise PermissionError(errno.EPERM, f"uid {uid} listens there, not a daemon of this user; set VFSD_RUNTIME_DIR")


def ask(path: Path, op: str, *, timeout: float = 2.0, **arguments: Any) -> Any:
    """Send one request to the socket *path*, and return its result. Each step may take *timeout* seconds.

    Raises NoAnswer, RequestTooLong, or VfsdError with the daemon's message.
    """
    connection = ControlConnection(os.fspath(path), timeout)
    try:
        reply = connection.ask(op, arguments)
    finally:
        connection.close()
    if not reply["ok"]:
        raise VfsdError(reply["error"]["message"])
    return reply["result"]
