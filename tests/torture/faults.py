"""Faults of the store during a round: killed, frozen, cut off, full. Each ends at the end of its block."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeAlias

from tests.support.proxy import Direction, Proxy
from tests.support.servers import RedisServer

Fault: TypeAlias = Callable[[], AbstractContextManager[None]]

_SQUEEZE = 256 << 10
"""The most bytes of memory that are free before a server is full, or that it already uses above its limit."""
_LONGEST_COMMIT = 1 << 16
"""A cut comes after fewer bytes than this. They may belong to several commits."""
_CUT_SECONDS = 1.0
"""The longest wait for a commit to cut. There may be none."""


class Faults:
    """Disturbs *server*, which the daemon reaches through *proxy*. *timeout* (s) is the daemon's commit deadline.

    Each public method is a fault. ``all`` has all of them.
    """

    def __init__(
        self, server: RedisServer, proxy: Proxy, timeout: float, rng: random.Random, done: Counter[str]
    ) -> None:
        self.all: tuple[Fault, ...] = tuple(getattr(self, name) for name in vars(Faults) if not name.startswith("_"))
        self._server = server
        self._proxy = proxy
        self._timeout = timeout
        self._rng = rng
        self._done = done

    @contextmanager
    def killed(self) -> Iterator[None]:
        """The server crashes, and restarts with the data on its disk."""
        self._server.kill()
        self._done["kills of Redis"] += 1
        try:
            self._wait()
            yield
        finally:
            self._server.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """The server does not answer. Its connections stay open."""
        self._server.freeze()
        try:
            longer = self._wait()
            self._done["freezes of Redis longer than the deadline" if longer else "short freezes of Redis"] += 1
            yield
        finally:
            self._server.thaw()

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """All connections break, and new ones are refused."""
        with self._proxy.refusing():
            self._done["cuts of all connections"] += 1
            self._wait()
            yield

    @contextmanager
    def cut_in_a_commit(self) -> Iterator[None]:
        """The connection breaks in a commit, at any byte of its request or replies. New ones may be refused."""
        direction = self._rng.choice([Direction.REQUEST, Direction.REPLY])
        most = self._rng.choice([10, 1000, _LONGEST_COMMIT]) if direction is Direction.REQUEST else 40
        lasts = self._rng.random() < 0.7
        cut = self._proxy.cut_commit(direction, self._rng.randrange(most), lasts=lasts)
        if cut.done.wait(_CUT_SECONDS):
            self._done["cuts within a commit"] += 1
        with self._proxy.refusing() if lasts else nullcontext():
            self._proxy.take_cut()
            if lasts:
                self._wait()
            yield

    @contextmanager
    def full(self) -> Iterator[None]:
        """The server has almost no free memory."""
        with self._server.client() as client:
            client.config_set(
                "maxmemory", client.info("memory")["used_memory"] + self._rng.randint(-_SQUEEZE, _SQUEEZE)
            )
            self._done["full Redis servers"] += 1
            try:
                self._wait()
                yield
            finally:
                client.config_set("maxmemory", 0)

    def _wait(self) -> bool:
        """Wait for less than the daemon's deadline or for longer. Return whether it was longer."""
        longer = self._rng.random() < 0.5
        share = self._rng.uniform(1.1, 2.0) if longer else self._rng.uniform(0.0, 0.7)
        time.sleep(share * self._timeout)  # the duration of the fault: there is nothing to wait for
        return longer
