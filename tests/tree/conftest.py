"""What a test of the tree starts from."""

import pytest

from tests.tree.planned_tree import PlannedTree


@pytest.fixture
def planned() -> PlannedTree:
    """Return a tree with an empty root, and the calls that change it."""
    return PlannedTree()
