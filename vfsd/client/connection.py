"""Asking a daemon from an ordinary, synchronous program. Imports in milliseconds: no trio, no store.

It never asks anything twice: a request that had no answer may have been carried out.
"""

import errno
import json
import os
import select
import socket
from io import BufferedReader
from pathlib import Path
from typing import Any

from vfsd.control import protocol
from vfsd.errors import VfsdError


class NoAnswer(VfsdError):
    """Nobody listens at a control socket, or the answer did not come in time; *number* is the errno for that."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


class RequestTooLong(VfsdError):
    """A request has more bytes than a line may have."""


class ControlConnection:
    """A connection to the control socket *address*, made when needed, and anew when it has ended.

    It waits at most *timeout* seconds for each step. One thread at a time may use it.
    """

    def __init__(self, address: str, timeout: float) -> None:
        self._address = address
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._answers: BufferedReader | None = None
        self._asked = 0

    def ask(self, op: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the daemon's reply to *op*. Raises NoAnswer, RequestTooLong."""
        line = protocol.request(self._asked + 1, op, arguments)
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
            raise NoAnswer(f"no answer at {self._address}: {error}", number) from None
        except BaseException:
            self.close()  # half an exchange: the next answer would be taken for another's
            raise

    def close(self) -> None:
        """Close the connection, if there is one."""
        for closing in (self._answers, self._socket):
            if closing is not None:
                closing.close()
        self._socket = self._answers = None

    def _exchange(self, line: bytes) -> dict[str, Any]:
        if self._socket is not None and select.select([self._socket], [], [], 0)[0]:
            self.close()  # nothing was asked: what there is to read is its end
        connection, answers = self._connected()
        self._asked += 1
        connection.sendall(line)
        answer = answers.readline()
        if not answer.endswith(b"\n"):
            raise ConnectionResetError(errno.ECONNRESET, "the daemon went away")
        reply: dict[str, Any] = json.loads(answer)
        return reply

    def _connected(self) -> tuple[socket.socket, BufferedReader]:
        if self._socket is None or self._answers is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(self._timeout)
            self._socket.connect(self._address)
            self._answers = self._socket.makefile("rb")
        return self._socket, self._answers


def ask(path: Path, op: str, *, timeout: float = 2.0, **arguments: Any) -> Any:
    """Return the result of *op* at the socket *path*, waiting at most *timeout* seconds for each step.

    Raises NoAnswer, or VfsdError with the daemon's own words.
    """
    connection = ControlConnection(os.fspath(path), timeout)
    try:
        answer = connection.ask(op, arguments)
    finally:
        connection.close()
    if not answer["ok"]:
        raise VfsdError(answer["error"]["message"])
    return answer["result"]
