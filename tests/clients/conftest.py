"""A mount and an ordinary directory to compare it with, and the frameworks that are let loose on both."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.frameworks import CannotInstall, NodeProject, deepagents_interpreter, node_packages


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> NodeProject:
    """Return Node 22 with Mastra, and our modules beside it."""
    return NodeProject(tmp_path_factory.mktemp("node"), found(node_packages))


@pytest.fixture(scope="session")
def deepagents() -> Path:
    """Return a Python that has deepagents."""
    return found(deepagents_interpreter)


def found(framework: Callable[[], Path]) -> Path:
    """Return where *framework* is, or fail with one line that says why it is not."""
    try:
        return framework()
    except CannotInstall as error:
        why = str(error)
    pytest.fail(why, pytrace=False)


@pytest.fixture
def ordinary() -> Iterator[Path]:
    """Yield an empty directory on tmpfs, the file system that a mount is to pass for."""
    with tempfile.TemporaryDirectory(prefix="vfsd-ordinary-", dir="/dev/shm") as directory:
        yield Path(directory)
