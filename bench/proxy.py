"""A Redis server that is far away: ``python -m bench.proxy SOCKET DELAY_MS`` prints the TCP port at which it is so.

Each piece of a request is passed on so many milliseconds after it came, so a round trip takes that much longer; pieces
do not wait for one another, so throughput stays what it was. Threads, for their sleep is finer than a selector's.
"""

import os
import queue
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import TypeAlias

_BLOCK = 1 << 18

_Late: TypeAlias = "queue.SimpleQueue[tuple[float, bytes]]"
"""What is to be passed on, and when (monotonic seconds). An empty block is the end."""


def _take(source: socket.socket, late: _Late, delay: float) -> None:
    block = b"-"
    while block:
        try:
            block = source.recv(_BLOCK)
        except OSError:  # the other side is gone: so is the connection
            block = b""
        late.put((time.monotonic() + delay, block))


def _give(late: _Late, target: socket.socket) -> None:
    with suppress(OSError):  # as above
        while True:
            due, block = late.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not block:
                target.shutdown(socket.SHUT_WR)
                return
            target.sendall(block)


def _connect(source: socket.socket, target: socket.socket, delay: float) -> None:
    late: _Late = queue.SimpleQueue()
    threading.Thread(target=_take, args=(source, late, delay), daemon=True).start()
    threading.Thread(target=_give, args=(late, target), daemon=True).start()


def main(path: str, delay_ms: str) -> None:
    """Pass connections on to the server at the unix socket *path* until killed."""
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)  # noqa: T201 (this is what the program is asked for)
    while True:
        client, _ = listening.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = socket.socket(socket.AF_UNIX)
        server.connect(os.fspath(path))
        _connect(client, server, float(delay_ms) / 1000)
        _connect(server, client, 0.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
