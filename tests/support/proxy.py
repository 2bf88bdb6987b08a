"""A TCP proxy between a daemon and its server, for faults at a chosen byte: holding, cutting, stranding, refusing.

It passes bytes on and counts them; it knows of Redis only how a commit begins (:data:`COMMIT`). The server's own
answers tell what it has executed, so no fault depends on time.
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


class Way(Enum):
    """A direction through the proxy, as the daemon sees it."""

    REQUEST = "request"
    REPLY = "reply"


class Cut:
    """A cut to come: *after* so many bytes in one direction, counted from the beginning of the next commit.

    Where it *lasts*, new connections are refused from that moment on, until the proxy is told otherwise. ``done`` is
    set once it has happened.
    """

    def __init__(self, way: Way, after: int, *, lasts: bool) -> None:
        self.way = way
        self.left = after
        self.lasts = lasts
        self.done = threading.Event()


class _Connection:
    """A client's connection and the one to the server, with a thread for each direction."""

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
        """Keep back what the client sends from now on, until :meth:`release`."""
        self._flowing.clear()

    def release(self) -> None:
        self._flowing.set()

    def strand(self) -> None:
        """Close the client's side only: what it has sent is still on its way to the server."""
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
                self._pass_on(Way.REQUEST, from_commit, self._server)
        _shut(self._server, socket.SHUT_WR)

    def _split_at_commit(self, block: bytes) -> tuple[bytes, bytes]:
        """Return *block* in two; the second part is what a cut counts."""
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
                self._pass_on(Way.REPLY, block, self._client)
        _shut(self._client, socket.SHUT_WR)

    def _pass_on(self, way: Way, block: bytes, target: socket.socket) -> None:
        """Send *block* to *target*, or as much of it as a cut allows, and cut."""
        cut = self._cut
        if cut is None or cut.way is not way:
            target.sendall(block)
            return
        passing = block[: cut.left]
        target.sendall(passing)
        cut.left -= len(passing)
        if not cut.left and (block or way is Way.REQUEST):
            if cut.lasts:
                self._proxy.refuse()
            self.cut()
            cut.done.set()
            raise ConnectionAbortedError


class Proxy:
    """Passes connections on to the server at the unix socket *server*, which may be changed."""

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
        """The URL of the server by way of this proxy."""
        host, port = self._listening.getsockname()
        return f"redis://{host}:{port}/0"

    @property
    def connections(self) -> list[_Connection]:
        """All there have been, the oldest first."""
        with self._lock:
            return list(self._connections)

    def cut_commit(self, way: Way, after: int, *, lasts: bool = False) -> Cut:
        """Cut the connection of the next commit, *after* so many bytes of its request, or of the replies to it.

        Where the cut *lasts*, no other connection can follow before the end of :meth:`refusing`.
        """
        cut = Cut(way, after, lasts=lasts)
        with self._lock:
            self._next_cut = cut
        return cut

    def take_cut(self) -> Cut | None:
        """Return the cut that the commit which begins now is to suffer."""
        with self._lock:
            cut, self._next_cut = self._next_cut, None
        return cut

    def refuse(self) -> None:
        """Close new connections at once, from now on."""
        self._refusing = True

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Cut all connections, and close new ones at once."""
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
        except OSError:  # the server is gone: so is the connection, as without a proxy
            server.close()
            return False
        connection = _Connection(self, client, server)
        with self._lock:
            self._connections.append(connection)
        connection.start()
        return True


def _shut(connected: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    with suppress(OSError):  # the other side may have done so
        connected.shutdown(how)
