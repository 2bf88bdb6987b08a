"""What a test of the tree starts from."""

import pytest

from tests.tree.scene import Scene


@pytest.fixture
def scene() -> Scene:
    """Return a tree with an empty root, and the calls that change it."""
    return Scene()
