"""One RESP connection on a non-blocking socket under trio, and how requests are laid out for it.

Measured, and the reasons for its shape: packing commands into one buffer costs milliseconds a MiB, so large values
are handed to ``sendmsg`` as they are; parking a task in trio costs more than Redis needs for a small commit, so the
socket is polled briefly first. Replies are parsed by hiredis.

It never retries, never reconnects, and knows no commands. Once a call has failed the link is of no further use,
since replies may be left over: :class:`LinkLost` says so, and the owner closes it.
"""

import select
import socket
import ssl
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import hiredis
import trio

from vfsd.busy_poll import BusyPoll

Reply: TypeAlias = Any
"""What hiredis makes of a RESP2 reply: bytes, int, None, a list of these, or a ReplyError (not raised)."""

ReplyError = hiredis.ReplyError
"""An error reply, as a value."""

POLL_MS = 1
"""How long (ms) a lone call polls the socket before it parks. Longer would hold up readers."""
_SPIN_NS = 200_000
"""How much of that (ns) it does not even sleep."""

_SEPARATE = 2048
"""Values of at least this many bytes are sent from where they lie instead of being joined with their neighbours."""
_IOV_MAX = 1024
_RECEIVE = 1 << 18
_POLLS_SKIPPED_AFTER_MISS = 64


class ConnectionLost(Exception):
    """The connection broke, or no answer came in time. What was sent may or may not have been executed."""


class RespRequest:
    """Commands laid out as RESP arrays, ready for scatter-gather output."""

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

    def add_laid_out(self, laid_out: bytes, commands: int) -> None:
        """Append so many *commands* that are RESP arrays already."""
        self.commands += commands
        self._small.append(laid_out)

    def buffers(self) -> list[bytes | memoryview]:
        """Return all that was added, as buffers to be sent one after another."""
        if self._small:
            self._buffers.append(b"".join(self._small))
            self._small = []
        return self._buffers

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return sum(map(len, self.buffers()))


class RespConnection:
    """A connected, authenticated socket to one Redis server. One call at a time: the caller sees to that."""

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
        """Send *request* and return one reply per command. Raises LinkLost; *deadline* is in trio's clock.

        *alone* says that nothing else waits for this connection, so that polling holds nobody up. The steps of
        *meanwhile* are taken while the server works: all of them, if it answers.
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
        """Send *buffers*, then return the next *expected* replies: to what was sent before, for who asks ahead.

        Else as :meth:`call`.
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
            raise ConnectionLost(str(error) or type(error).__name__) from error
        except trio.TooSlowError:
            raise ConnectionLost("no answer in time") from None
        except trio.Cancelled:  # replies are still to come, and would be taken for the next call's
            self.close()
            raise

    def close(self) -> None:
        """Close the socket, at once."""
        self._socket.close()

    def _poll(self) -> None:
        """Wait a moment for the reply without giving up the thread, unless the server has been too far for that."""
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
                if next(meanwhile, self) is self and not (alone and self._writable.poll(POLL_MS)):
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
            self._reader.feed(self._received, 0, received)  # type: ignore[arg-type]  # takes any buffer; its stub knows two
        return replies


def _unsent(buffers: Sequence[bytes | memoryview], sent: int) -> list[bytes | memoryview]:
    """Return what remains of *buffers* after their first *sent* bytes."""
    for index, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[index + 1 :]] if sent else list(buffers[index:])
        sent -= len(buffer)
    return []
