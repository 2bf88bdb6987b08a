"""Fixtures of the crash tests."""

from pathlib import Path

import pytest

from tests.support.servers import RedisServer


@pytest.fixture(params=["redis", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of each kind of store that keeps its data when the daemon is killed."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'scopes.db'}"
    server: RedisServer = request.getfixturevalue("redis_server")
    return server.url
