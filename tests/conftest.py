"""Fixtures and settings for all tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

# Before any import of these modules: a failed assertion of a helper then shows its values, as in a test.
pytest.register_assert_rewrite(*(f"tests.{tier.name}" for tier in Path(__file__).parent.iterdir() if tier.is_dir()))

from tests.support.mounted import MountFactory, mounting  # noqa: E402
from tests.support.servers import RedisServer, redis_program, valkey_program  # noqa: E402


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """Yield a running redis-server that the tests of one process share. Nobody empties it: each uses its own scopes."""
    with RedisServer(redis_program()) as server:
        yield server


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[RedisServer]:
    """Yield a running Valkey that the tests of one process share. Nobody empties it: each uses its own scopes."""
    with RedisServer(valkey_program()) as server:
        yield server


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[MountFactory]:
    """Yield a factory of mounts. After the test it ends all mounts, and unexpected log lines fail the test."""
    with mounting(tmp_path) as factory:
        yield factory
