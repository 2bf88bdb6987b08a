"""Private servers, proxies and mounts: no other test uses a server that a test disturbs.

A mount ends before its server, so its log shows only the faults of the test itself.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.mounted import MountFactory, mounting
from tests.support.proxy import Proxy
from tests.support.servers import RedisServer, ServerOptions, redis_program, valkey_program

ServerFactory: TypeAlias = Callable[[ServerOptions], RedisServer]
ProxyFactory: TypeAlias = Callable[[RedisServer], Proxy]


@pytest.fixture
def make_server() -> Iterator[ServerFactory]:
    """Yield a function that starts Redis servers. They end after the test."""
    with ExitStack() as stack:
        yield lambda options: stack.enter_context(RedisServer(redis_program(), options))


@pytest.fixture
def make_valkey() -> Iterator[ServerFactory]:
    """Yield a function that starts Valkey servers. They end after the test."""
    with ExitStack() as stack:
        yield lambda options: stack.enter_context(RedisServer(valkey_program(), options))


@pytest.fixture
def server(make_server: ServerFactory) -> RedisServer:
    """Return a private Redis that persists nothing."""
    return make_server(ServerOptions())


@pytest.fixture
def make_proxy(make_server: ServerFactory) -> Iterator[ProxyFactory]:
    """Yield a function that starts a proxy to a server."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(Proxy(server.socket))


@pytest.fixture
def mount(
    tmp_path: Path, make_server: ServerFactory, make_valkey: ServerFactory, make_proxy: ProxyFactory
) -> Iterator[MountFactory]:
    """Yield a factory of mounts. They end before servers and proxies, and unexpected log lines fail the test."""
    with mounting(tmp_path) as factory:
        yield factory
