"""The store of a torture: its URL, the mount options, and the faults that it can have."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.proxy import Proxy
from tests.support.servers import RedisServer, ServerOptions, redis_program
from tests.torture.counts import Counts
from tests.torture.faults import Fault, Faults

TIMEOUT = 2.0
"""The daemon's commit deadline in seconds. It is short, so that many faults are longer."""


@dataclass(frozen=True)
class StoreUnderTest:
    """A store at *url*, the *options* of its mounts, and its possible *faults*."""

    url: str
    options: Sequence[str] = ("--xattr",)
    faults: Sequence[Fault] = ()
    proxy: Proxy | None = None

    def forget_traffic(self) -> None:
        """Forget the bytes that the proxy has recorded: a long torture would need too much memory."""
        if self.proxy is not None:
            for connection in self.proxy.connections:
                connection.requested.clear()


@contextmanager
def private_redis(rng: random.Random, counts: Counts) -> Iterator[StoreUnderTest]:
    """Yield a Redis that loses nothing that it has acknowledged. The daemon reaches it through a proxy."""
    durable = ServerOptions(appendonly=True, arguments=("--appendfsync", "always"))
    with RedisServer(redis_program(), durable) as server, Proxy(server.socket) as proxy:
        faults = Faults(server, proxy, TIMEOUT, rng, counts.faults).all
        yield StoreUnderTest(proxy.url, ("--xattr", "--store-timeout", str(TIMEOUT)), faults, proxy)
