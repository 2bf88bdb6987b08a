"""Fixtures of the client tests: the agent frameworks, and a tmpfs directory to compare a mount with."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.frameworks import CannotInstall, NodeProject, deepagents_interpreter, node_packages


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> NodeProject:
    """Return a project for Node 22 with Mastra and our own modules."""
    return NodeProject(tmp_path_factory.mktemp("node"), path_of(node_packages))


@pytest.fixture(scope="session")
def deepagents() -> Path:
    """Return a Python that has deepagents."""
    return path_of(deepagents_interpreter)


def path_of(framework: Callable[[], Path]) -> Path:
    """Return the path of *framework*. If it cannot be installed, fail with one line that says why."""
    try:
        return framework()
    except CannotInstall as error:
        why = str(error)
    pytest.fail(why, pytrace=False)


@pytest.fixture
def tmpfs() -> Iterator[Path]:
    """Yield an empty directory on tmpfs, which a mount must behave like."""
    with tempfile.TemporaryDirectory(prefix="vfsd-tmpfs-", dir="/dev/shm") as directory:
        yield Path(directory)
