"""The places that every test of the contract runs over."""

import random
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.servers import RedisServer
from tests.support.stores import DurablePlace, MemoryPlace, Place, RedisPlace, SqlitePlace

_DURABLE = ("sqlite", "redis", "valkey")


@pytest.fixture(params=_DURABLE)
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> DurablePlace:
    """Return each of the places that outlive their daemons."""
    return _durable(request.param, request, tmp_path)


@pytest.fixture(params=("memory", *_DURABLE))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Return each place there is."""
    if request.param == "memory":
        return MemoryPlace()
    return _durable(request.param, request, tmp_path)


@pytest.fixture
def durables(request: pytest.FixtureRequest, tmp_path: Path) -> list[DurablePlace]:
    """Return all the places that outlive their daemons: for what takes time, and can take it side by side."""
    return [_durable(name, request, tmp_path) for name in _DURABLE]


def _durable(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> DurablePlace:
    if name == "sqlite":
        return SqlitePlace(tmp_path / "scopes.db")
    server: RedisServer = request.getfixturevalue(f"{name}_server")
    return RedisPlace(server)


@pytest.fixture
def new_scope() -> Callable[[], str]:
    """Return a source of scope names that nobody has used: servers are shared by all tests."""
    return lambda: f"test-{secrets.token_hex(8)}"


@pytest.fixture
def scope(new_scope: Callable[[], str]) -> str:
    """Return the name of a scope that there is not yet."""
    return new_scope()


@pytest.fixture
def chance() -> random.Random:
    """Return a source of chance whose seed a failing test shows."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    return random.Random(seed)
