"""What may happen to the store meanwhile: killed, frozen, cut off, full; each is over at the end of its block."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeAlias

from tests.support.proxy import Proxy, Way
from tests.support.servers import RedisServer

Fault: TypeAlias = Callable[[], AbstractContextManager[None]]

_SQUEEZE = 256 << 10
"""Bytes left to a server that is to be full soon, at most; or that it has too many already."""
_LONGEST_COMMIT = 1 << 16
"""Cuts come after fewer bytes than this, of a commit's or of several."""
_CUT_SECONDS = 1.0
"""How long to wait for a commit to cut, at most: there may be none."""


class Faults:
    """Disturbs *server*, which the daemon reaches by way of *proxy*, *timeout* (s) being its longest commit."""

    def __init__(
        self, server: RedisServer, proxy: Proxy, timeout: float, rng: random.Random, done: Counter[str]
    ) -> None:
        self.all: tuple[Fault, ...] = (self.killed, self.frozen, self.cut_off, self.cut_in_a_commit, self.full)
        self._server = server
        self._proxy = proxy
        self._timeout = timeout
        self._rng = rng
        self._done = done

    @contextmanager
    def killed(self) -> Iterator[None]:
        """The server crashes, and comes back with what its disk has."""
        self._server.kill()
        self._done["kills of Redis"] += 1
        try:
            self._last()
            yield
        finally:
            self._server.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """The server stops to answer, its connections staying open."""
        self._server.freeze()
        try:
            longer = self._last()
            self._done["freezes of Redis longer than the deadline" if longer else "short freezes of Redis"] += 1
            yield
        finally:
            self._server.thaw()

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """All connections break, and new ones are refused."""
        with self._proxy.refusing():
            self._done["cuts of the link"] += 1
            self._last()
            yield

    @contextmanager
    def cut_in_a_commit(self) -> Iterator[None]:
        """The link breaks within a commit, at any byte of the request or its replies, and may stay cut."""
        way = self._rng.choice([Way.REQUEST, Way.REPLY])
        most = self._rng.choice([10, 1000, _LONGEST_COMMIT]) if way is Way.REQUEST else 40
        lasts = self._rng.random() < 0.7
        cut = self._proxy.cut_commit(way, self._rng.randrange(most), lasts=lasts)
        if cut.done.wait(_CUT_SECONDS):
            self._done["cuts within a commit"] += 1
        with self._proxy.refusing() if lasts else nullcontext():
            self._proxy.take_cut()
            if lasts:
                self._last()
            yield

    @contextmanager
    def full(self) -> Iterator[None]:
        """The server has no room for more than it has."""
        with self._server.client() as client:
            client.config_set(
                "maxmemory", client.info("memory")["used_memory"] + self._rng.randint(-_SQUEEZE, _SQUEEZE)
            )
            self._done["squeezes of Redis"] += 1
            try:
                self._last()
                yield
            finally:
                client.config_set("maxmemory", 0)

    def _last(self) -> bool:
        """Let the fault last, for less than the daemon's deadline or for longer; return which."""
        longer = self._rng.random() < 0.5
        share = self._rng.uniform(1.1, 2.0) if longer else self._rng.uniform(0.0, 0.7)
        time.sleep(share * self._timeout)  # not waiting for anything: the fault is to last
        return longer
