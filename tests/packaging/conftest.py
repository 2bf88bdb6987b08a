"""What a test of the set-up starts from."""

from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.packaging.checkout")

from tests.packaging.checkout import Checkout  # noqa: E402 (its assertions are to be explained)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Return a copy of this checkout on a machine that has nothing yet."""
    return Checkout(tmp_path / "checkout", tmp_path / "machine")
