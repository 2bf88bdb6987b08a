"""A mount, and clients of its daemon."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer
from vfsd import Vfs, connect

Connect: TypeAlias = Callable[[Mounted], Vfs]


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """Yield a function that connects a client to a mount. The clients are closed after the test."""
    with ExitStack() as stack:

        def connect_to(mounted: Mounted) -> Vfs:
            monkeypatch.setenv("VFSD_RUNTIME_DIR", mounted.environment["VFSD_RUNTIME_DIR"])
            return stack.enter_context(connect(mounted.path))

        yield connect_to


@pytest.fixture
def mounted(mount: MountFactory, redis_server: RedisServer) -> Mounted:
    return mount(redis_server.url)


@pytest.fixture
def top(mounted: Mounted) -> Path:
    """Return the root of the mount."""
    return mounted.path


@pytest.fixture
def vfs(mounted: Mounted, connected: Connect) -> Vfs:
    return connected(mounted)
