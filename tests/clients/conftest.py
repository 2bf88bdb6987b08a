"""A mount and an ordinary directory to compare it with, and the frameworks that are let loose on both."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.frameworks import CannotInstall, NodeProject, deepagents_interpreter, node_packages


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> NodeProject:
    """Return Node 22 with Mastra, and our modules beside it."""
    try:
        return NodeProject(tmp_path_factory.mktemp("node"), node_packages())
    except CannotInstall as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def deepagents() -> Path:
    """Return a Python that has deepagents."""
    try:
        return deepagents_interpreter()
    except CannotInstall as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def ordinary() -> Iterator[Path]:
    """Yield an empty directory on tmpfs, the file system that a mount is to pass for."""
    with tempfile.TemporaryDirectory(prefix="vfsd-ordinary-", dir="/dev/shm") as directory:
        yield Path(directory)
