"""One RESP connection on a non-blocking socket under trio, and the encoding of its requests.

Two measurements decide its design. Copying commands into one buffer costs milliseconds per MiB, so large values go to
``sendmsg`` without a copy. Putting a task to sleep in trio costs more than Redis needs for a small commit, so the
socket is polled briefly first. hiredis parses the replies.

It never retries, never reconnects, and knows no commands. After a failed call some replies may still be on their way,
so the connection is useless: the call raises :class:`ConnectionLost`, and the owner closes the connection.
"""

import select
import socket
import ssl
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import hiredis
import trio

from vfsd.busy_poll import BusyPoll
from vfsd.errors import clause

Reply: TypeAlias = Any
"""A RESP2 reply as hiredis returns it: bytes, int, None, a list of these, or a ReplyError (as a value, not raised)."""

ReplyError = hiredis.ReplyError
"""An error reply, as a value."""

POLL_MS = 1
"""How long (ms) a lone call polls the socket before its task sleeps in trio. A longer time would delay readers."""
_SPIN_NS = 200_000
"""The first part of that time (ns), in which the thread does not sleep at all."""

_SEPARATE = 2048
"""Values of at least this many bytes are sent without a copy. Smaller ones are joined with the words around them."""
_IOV_MAX = 1024
_RECEIVE = 1 << 18
_POLLS_SKIPPED_AFTER_MISS = 64
_NO_STEP_LEFT = object()
"""A default for :func:`next` that no step can return: steps return None."""


class ConnectionLost(Exception):
    """The connection broke, or no answer came in time. The server may or may not have executed what was sent."""


class RespRequest:
    """Commands, encoded as RESP arrays in buffers for scatter-gather output."""

    def __init__(self) -> None:
        self.commands = 0
        self.has_large_values = False
        self._buffers: list[bytes | memoryview] = []
        self._small: list[bytes] = []

    def add(self, *words: bytes | memoryview) -> None:
        """Append one command."""
        self.commands += 1
        small = self._small
        small.append(b"*%d\r\n" % len(words))
        for word in words:
            if len(word) < _SEPARATE:
                small.append(b"$%d\r\n%b\r\n" % (len(word), word))  # type: ignore[str-format]  # %b takes any buffer
            else:
                small.append(b"$%d\r\n" % len(word))
                self.has_large_values = True
                self._buffers += (b"".join(small), word)
                small.clear()
                small.append(b"\r\n")

    def add_encoded(self, encoded: bytes, commands: int) -> None:
        """Append *encoded*, which is as many RESP arrays as *commands* says."""
        self.commands += commands
        self._small.append(encoded)

    def buffers(self) -> list[bytes | memoryview]:
        """Return everything that was added, as buffers to send in this order."""
        if self._small:
            self._buffers.append(b"".join(self._small))
            self._small = []
        return self._buffers

    @property
    def size(self) -> int:
        """The size of the request in bytes."""
        return sum(map(len, self.buffers()))


class RespConnection:
    """A connected, authenticated socket to one Redis server. The caller must make one call at a time."""

    def __init__(self, connected: socket.socket) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._reader = hiredis.Reader()
        self._received = bytearray(_RECEIVE)
        self._poller = select.poll()
        self._poller.register(connected, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(connected, select.POLLOUT)
        self._busy_poll = BusyPoll(connected.fileno(), _SPIN_NS)
        self._polls_to_skip = 0

    async def call(
        self, request: RespRequest, deadline: float, *, alone: bool = True, meanwhile: Iterable[None] = ()
    ) -> list[Reply]:
        """Send *request* and return one reply per command. Raises ConnectionLost. *deadline* is in trio's clock.

        *alone* says that no other task waits for this connection, so polling delays nobody. *meanwhile* is work to do
        while the server works, one step at a time. All steps are done before the replies are read.
        """
        return await self.exchange(request.buffers(), request.commands, deadline, alone=alone, meanwhile=meanwhile)

    async def exchange(
        self,
        buffers: Sequence[bytes | memoryview],
        expected: int,
        deadline: float,
        *,
        alone: bool = False,
        meanwhile: Iterable[None] = (),
    ) -> list[Reply]:
        """Send *buffers*, then return the next *expected* replies, which may answer earlier requests.

        So a caller can send its next request before it reads the last replies. Otherwise the same as :meth:`call`.
        """
        try:
            steps = iter(meanwhile)
            await self._send(buffers, deadline, steps, alone=alone)
            for _ in steps:
                pass
            if alone:
                self._poll()
            return await self._receive(expected, deadline)
        except (OSError, hiredis.ProtocolError) as error:
            raise ConnectionLost(clause(error)) from error
        except trio.TooSlowError:
            raise ConnectionLost("no answer in time") from None
        except trio.ClosedResourceError:
            raise ConnectionLost("closed, because it is of no more use") from None
        except trio.Cancelled:  # the next call would read the replies that are still on their way
            self.close()
            raise

    def close(self) -> None:
        """Close the socket. A call that is under way fails at once with ConnectionLost.

        Trio must know: the next socket that is opened may get the same descriptor, for which a task would still wait.
        """
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()

    def _poll(self) -> None:
        """Wait a moment for the reply without a task switch. After a miss, do not wait for some calls."""
        if self._polls_to_skip:
            self._polls_to_skip -= 1
        elif not (self._busy_poll.wait() or self._poller.poll(POLL_MS)):
            self._polls_to_skip = _POLLS_SKIPPED_AFTER_MISS

    async def _send(
        self, buffers: Sequence[bytes | memoryview], deadline: float, meanwhile: Iterator[None], *, alone: bool
    ) -> None:
        while buffers:
            try:
                sent = self._write(buffers[:_IOV_MAX])
            except (BlockingIOError, ssl.SSLWantWriteError):
                # The socket's buffer is full: use the time for one step, or wait if no step is left.
                if next(meanwhile, _NO_STEP_LEFT) is not _NO_STEP_LEFT:
                    continue
                if alone and self._writable.poll(POLL_MS):
                    continue
                with trio.fail_at(deadline):
                    await trio.lowlevel.wait_writable(self._socket)
            else:
                buffers = _unsent(buffers, sent)

    def _write(self, buffers: Sequence[bytes | memoryview]) -> int:
        if isinstance(self._socket, ssl.SSLSocket):
            return self._socket.send(b"".join(buffers))
        return self._socket.sendmsg(buffers)

    async def _receive(self, count: int, deadline: float) -> list[Reply]:
        replies: list[Reply] = []
        while len(replies) < count:
            while (reply := self._reader.gets()) is not False:
                replies.append(reply)
                if len(replies) == count:
                    return replies
            try:
                received = self._socket.recv_into(self._received)
            except (BlockingIOError, ssl.SSLWantReadError):
                with trio.fail_at(deadline):
                    await trio.lowlevel.wait_readable(self._socket)
                continue
            if not received:
                raise ConnectionResetError("the server closed the connection")
            self._reader.feed(self._received, 0, received)  # type: ignore[arg-type]  # it takes any buffer; its stub names two types
        return replies


def _unsent(buffers: Sequence[bytes | memoryview], sent: int) -> list[bytes | memoryview]:
    """Return the rest of *buffers* after their first *sent* bytes."""
    for index, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[index + 1 :]] if sent else list(buffers[index:])
        sent -= len(buffer)
    return []
