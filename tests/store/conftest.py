"""The backends that the tests of the store contract run over."""

import random
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.servers import RedisServer, redis_program, valkey_program
from tests.support.stores import Backend, DurableBackend, MemoryBackend, RedisBackend, SqliteBackend

_DURABLE = ("sqlite", "redis", "valkey")


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """Yield a Redis for the tests here. They leave damaged scopes behind, which others would find in a list."""
    with RedisServer(redis_program()) as server:
        yield server


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[RedisServer]:
    """Yield a Valkey for the tests here, for the same reason."""
    with RedisServer(valkey_program()) as server:
        yield server


@pytest.fixture(params=_DURABLE)
def durable_backend(request: pytest.FixtureRequest, tmp_path: Path) -> DurableBackend:
    """Return each backend that outlives its daemons, one per test."""
    return _durable(request.param, request, tmp_path)


@pytest.fixture(params=("memory", *_DURABLE))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """Return each backend, one per test."""
    if request.param == "memory":
        return MemoryBackend()
    return _durable(request.param, request, tmp_path)


@pytest.fixture
def redis_backend(redis_server: RedisServer) -> RedisBackend:
    """Return a backend on Redis, for a test of what only Redis can hold."""
    return RedisBackend(redis_server)


@pytest.fixture
def sqlite_backend(tmp_path: Path) -> SqliteBackend:
    """Return a backend in a SQLite file, for a test of what only SQLite can hold."""
    return SqliteBackend(tmp_path / "scopes.db")


@pytest.fixture
def durable_backends(request: pytest.FixtureRequest, tmp_path: Path) -> list[DurableBackend]:
    """Return all durable backends, for a slow test that can use them at the same time."""
    return [_durable(name, request, tmp_path) for name in _DURABLE]


def _durable(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> DurableBackend:
    if name == "sqlite":
        return SqliteBackend(tmp_path / "scopes.db")
    server: RedisServer = request.getfixturevalue(f"{name}_server")
    return RedisBackend(server)


@pytest.fixture
def new_scope() -> Callable[[], str]:
    """Return a function that makes unused scope names. They must be unique: the tests here share the servers."""
    return lambda: f"test-{secrets.token_hex(8)}"


@pytest.fixture
def scope(new_scope: Callable[[], str]) -> str:
    """Return the name of a scope that does not exist yet."""
    return new_scope()


@pytest.fixture
def rng() -> random.Random:
    """Return a random number generator. Its seed is in the output of a failing test."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    return random.Random(seed)
