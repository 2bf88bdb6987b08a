"""What a test of the tree starts from."""

import pytest

pytest.register_assert_rewrite("tests.tree.beside", "tests.tree.rebuild", "tests.tree.scene")

from tests.tree.scene import Scene  # noqa: E402 (its assertions are to be explained)


@pytest.fixture
def scene() -> Scene:
    """Return a tree with an empty root, and the calls that change it."""
    return Scene()
