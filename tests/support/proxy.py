"""A TCP proxy between a daemon and its server. It holds back, cuts or refuses connections at a chosen byte.

The proxy passes bytes on and counts them. The only thing that it knows about Redis is how a commit begins
(:data:`COMMIT`). The replies of the server show what it has executed, so no fault depends on time.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

COMMIT = b"*1\r\n$5\r\nMULTI\r\n"
"""The first bytes of every commit that is a transaction."""

_BLOCK = 1 << 16
_PATIENCE = 60.0


class Direction(Enum):
    """A direction through the proxy, as the daemon sees it."""

    REQUEST = "request"
    REPLY = "reply"


class Cut:
    """A planned cut: *after* this number of bytes in one direction, counted from the beginning of the next commit.

    If it *lasts*, the proxy refuses new connections from that moment until the end of :meth:`Proxy.refusing`. ``done``
    is set when the cut has happened.
    """

    def __init__(self, direction: Direction, after: int, *, lasts: bool) -> None:
        self.direction = direction
        self.remaining = after
        self.lasts = lasts
        self.done = threading.Event()


class _Connection:
    """A connection from the client, the matching one to the server, and a thread for each direction."""

    def __init__(self, proxy: "Proxy", client: socket.socket, server: socket.socket) -> None:
        self.requested = bytearray()
        self.replied = 0
        self.holding = threading.Event()
        self._proxy = proxy
        self._client = client
        self._server = server
        self._flowing = threading.Event()
        self._flowing.set()
        self._cut: Cut | None = None
        self._threads = [
            threading.Thread(target=self._pump_requests, daemon=True),
            threading.Thread(target=self._pump_replies, daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    # --- faults

    def hold(self) -> None:
        """Hold back everything that the client sends, until :meth:`release`."""
        self._flowing.clear()

    def release(self) -> None:
        self._flowing.set()

    def cut_client(self) -> None:
        """Close the client's side only. Everything that it has sent still reaches the server."""
        _shut(self._client)

    def cut(self) -> None:
        """Close both sides."""
        _shut(self._client)
        _shut(self._server)
        self._flowing.set()

    def close(self) -> None:
        self.cut()
        for thread in self._threads:
            thread.join(_PATIENCE)
        self._client.close()
        self._server.close()

    # --- passing on

    def _pump_requests(self) -> None:
        with suppress(OSError):
            while block := self._client.recv(_BLOCK):
                self.requested += block
                if not self._flowing.is_set():
                    self.holding.set()
                    self._flowing.wait()
                before, from_commit = self._split_at_commit(block)
                self._server.sendall(before)
                self._pass_on(Direction.REQUEST, from_commit, self._server)
        _shut(self._server, socket.SHUT_WR)

    def _split_at_commit(self, block: bytes) -> tuple[bytes, bytes]:
        """Return *block* in two parts. A cut counts the second part."""
        if self._cut is not None:
            return b"", block
        start = block.find(COMMIT)
        if start >= 0:
            self._cut = self._proxy.take_cut()
        return (block, b"") if self._cut is None else (block[:start], block[start:])

    def _pump_replies(self) -> None:
        with suppress(OSError):
            while block := self._server.recv(_BLOCK):
                self.replied += len(block)
                self._pass_on(Direction.REPLY, block, self._client)
        _shut(self._client, socket.SHUT_WR)

    def _pass_on(self, direction: Direction, block: bytes, target: socket.socket) -> None:
        """Send *block* to *target*. If a cut is due, send only the bytes before it, and cut."""
        cut = self._cut
        if cut is None or cut.direction is not direction:
            target.sendall(block)
            return
        allowed = block[: cut.remaining]
        target.sendall(allowed)
        cut.remaining -= len(allowed)
        if not cut.remaining and (block or direction is Direction.REQUEST):
            if cut.lasts:
                self._proxy.refuse()
            self.cut()
            cut.done.set()
            raise ConnectionAbortedError


class Proxy:
    """Passes connections on to the server at the unix socket *server*. This attribute may be changed."""

    def __init__(self, server: Path) -> None:
        self.server = server
        self._refusing = False
        self._next_cut: Cut | None = None
        self._connections: list[_Connection] = []
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _shut(self._listening)
        self._accepting.join(_PATIENCE)
        self._listening.close()
        for connection in self._connections:
            connection.close()

    @property
    def url(self) -> str:
        """The URL of the server through this proxy."""
        host, port = self._listening.getsockname()
        return f"redis://{host}:{port}/0"

    @property
    def connections(self) -> list[_Connection]:
        """All connections so far, the oldest first."""
        with self._lock:
            return list(self._connections)

    def cut_commit(self, direction: Direction, after: int, *, lasts: bool = False) -> Cut:
        """Cut the connection of the next commit *after* this number of bytes of its request, or of the replies to it.

        If the cut *lasts*, no new connection is possible before the end of :meth:`refusing`.
        """
        cut = Cut(direction, after, lasts=lasts)
        with self._lock:
            self._next_cut = cut
        return cut

    def take_cut(self) -> Cut | None:
        """Return the cut for the commit that begins now, and forget it."""
        with self._lock:
            cut, self._next_cut = self._next_cut, None
        return cut

    def refuse(self) -> None:
        """Close all new connections at once."""
        self._refusing = True

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Cut all connections, and close new ones at once, during the block."""
        self.refuse()
        for connection in self.connections:
            connection.cut()
        try:
            yield
        finally:
            self._refusing = False

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self._refusing or not self._connect(client):
                    client.close()

    def _connect(self, client: socket.socket) -> bool:
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(self.server))
        except OSError:  # the server has ended: refuse, as it would without a proxy
            server.close()
            return False
        connection = _Connection(self, client, server)
        with self._lock:
            self._connections.append(connection)
        connection.start()
        return True


def _shut(connection: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    with suppress(OSError):  # the other side may have closed it
        connection.shutdown(how)
