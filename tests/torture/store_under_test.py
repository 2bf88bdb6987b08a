"""Where a torture takes place: a store, how it is mounted from, and the faults that it can be given."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.proxy import Proxy
from tests.support.servers import RedisServer, ServerOptions, redis_program
from tests.torture.faults import Fault, Faults
from tests.torture.figures import Figures

TIMEOUT = 2.0
"""The daemon's longest commit, in seconds: short, so that many faults are longer."""


@dataclass(frozen=True)
class Setting:
    """A store at *url*, mounted from with *options*, that suffers *faults*"""

    url: str
    options: Sequence[str] = ("--xattr",)
    faults: Sequence[Fault] = ()
    proxy: Proxy | None = None

    def tidy(self) -> None:
        """Forget what went through the proxy: a long torture would not have the memory."""
        if self.proxy is not None:
            for connection in self.proxy.connections:
                connection.requested.clear()


@contextmanager
def private_redis(rng: random.Random, figures: Figures) -> Iterator[Setting]:
    """Yield a Redis that loses nothing it has acknowledged, reached by way of a proxy."""
    durable = ServerOptions(appendonly=True, arguments=("--appendfsync", "always"))
    with RedisServer(redis_program(), durable) as server, Proxy(server.socket) as proxy:
        faults = Faults(server, proxy, TIMEOUT, rng, figures.faults).all
        yield Setting(proxy.url, ("--xattr", "--store-timeout", str(TIMEOUT)), faults, proxy)
