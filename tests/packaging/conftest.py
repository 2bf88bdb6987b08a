"""Fixtures of the packaging tests."""

from pathlib import Path

import pytest

from tests.packaging.checkout import Checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Return a copy of this checkout on a machine without installed packages."""
    return Checkout(tmp_path / "checkout", tmp_path / "machine")
