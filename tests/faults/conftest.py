"""Servers, proxies and mounts for one test each: a server that is to suffer is nobody else's.

A mount ends before its server does, so its log tells of the test's own faults only.
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
Connector: TypeAlias = Callable[[RedisServer], Proxy]


@pytest.fixture
def make_server() -> Iterator[ServerFactory]:
    """Yield a starter of Redis servers, which are gone after the test."""
    with ExitStack() as stack:
        yield lambda options: stack.enter_context(RedisServer(redis_program(), options))


@pytest.fixture
def make_valkey() -> Iterator[ServerFactory]:
    """Yield a starter of Valkey servers, which are gone after the test."""
    with ExitStack() as stack:
        yield lambda options: stack.enter_context(RedisServer(valkey_program(), options))


@pytest.fixture
def server(make_server: ServerFactory) -> RedisServer:
    """Return a Redis of this test's own, which persists nothing."""
    return make_server(ServerOptions())


@pytest.fixture
def proxied(make_server: ServerFactory) -> Iterator[Connector]:
    """Yield a maker of proxies to servers."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(Proxy(server.socket))


@pytest.fixture
def mount(
    tmp_path: Path, make_server: ServerFactory, make_valkey: ServerFactory, proxied: Connector
) -> Iterator[MountFactory]:
    """Yield a maker of mounts; they end before servers and proxies do, and their logs were quiet."""
    with mounting(tmp_path) as factory:
        yield factory
