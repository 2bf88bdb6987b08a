"""What every tier of tests may start from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mounted import MountFactory, mounting
from tests.support.servers import RedisServer, redis_program, valkey_program

# Their assertions are to be explained; tests of more than one directory import them.
pytest.register_assert_rewrite(
    "tests.faults.agreement",
    "tests.seeds.seeded_scope",
    "tests.tree.tree_and_model",
    "tests.tree.rebuild",
    "tests.tree.planned_tree",
)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """Yield a running redis-server for all tests: use scope names of your own, for nobody empties it."""
    with RedisServer(redis_program()) as server:
        yield server


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[RedisServer]:
    """Yield a running Valkey for all tests: use scope names of your own, for nobody empties it."""
    with RedisServer(valkey_program()) as server:
        yield server


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[MountFactory]:
    """Yield a maker of mounts for one test; afterwards all are gone, and their logs were quiet."""
    with mounting(tmp_path) as factory:
        yield factory
