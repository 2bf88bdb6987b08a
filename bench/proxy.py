"""A proxy that adds a delay to a Redis server. ``python -m bench.proxy SOCKET DELAY_MS`` prints its TCP port.

The proxy forwards each block of a request DELAY_MS after it arrived, so a round trip takes that much longer. Blocks do
not wait for each other, so the throughput does not change. It uses threads, because their sleep is more exact than the
timeout of a selector.
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

_Delayed: TypeAlias = "queue.SimpleQueue[tuple[float, bytes]]"
"""Blocks to forward, each with its time (monotonic, in seconds). An empty block means the end."""


def _receive(source: socket.socket, delayed: _Delayed, delay: float) -> None:
    block = b"-"
    while block:
        try:
            block = source.recv(_BLOCK)
        except OSError:  # the peer has gone, so the connection ends
            block = b""
        delayed.put((time.monotonic() + delay, block))


def _forward(delayed: _Delayed, target: socket.socket) -> None:
    with suppress(OSError):  # the peer has gone
        while True:
            due, block = delayed.get()
            time.sleep(max(0.0, due - time.monotonic()))
            if not block:
                target.shutdown(socket.SHUT_WR)
                return
            target.sendall(block)


def _connect(source: socket.socket, target: socket.socket, delay: float) -> None:
    delayed: _Delayed = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(source, delayed, delay), daemon=True).start()
    threading.Thread(target=_forward, args=(delayed, target), daemon=True).start()


def main(path: str, delay_ms: str) -> None:
    """Forward connections to the server at the unix socket *path*, until this process is killed."""
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)  # noqa: T201 (the port is the output of this program)
    while True:
        client, _ = listening.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = socket.socket(socket.AF_UNIX)
        server.connect(os.fspath(path))
        _connect(client, server, float(delay_ms) / 1000)
        _connect(server, client, 0.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
