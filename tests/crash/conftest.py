"""The stores that outlive their daemon, one after the other."""

from pathlib import Path

import pytest

from tests.support.servers import RedisServer


@pytest.fixture(params=["redis", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a store that outlives its daemon."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'scopes.db'}"
    server: RedisServer = request.getfixturevalue("redis_server")
    return server.url
