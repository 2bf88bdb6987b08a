"""Stores of other packages, found by the entry-point group ``vfsd.stores``."""

from pathlib import Path

import pytest

from vfsd.errors import UsageError
from vfsd.store.base import StoreOptions
from vfsd.store.url import open_store

_MODULE = """
from vfsd.store.memory import MemoryStore

def open_store(url, options):
    store = MemoryStore()
    store.label = f"{url} within {options.timeout} s"
    return store
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "borrowed_store.py").write_text(_MODULE)
    package = tmp_path / "borrowed_store-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: borrowed-store\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[vfsd.stores]\nborrowed = borrowed_store:open_store\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("installed")
def test_a_store_of_another_package_serves_its_scheme() -> None:
    assert open_store("borrowed:place", StoreOptions(timeout=2)).label == "borrowed:place within 2 s"


def test_a_scheme_that_nobody_serves_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"unknown scheme 'nobody'; this vfsd knows memory, redis, "):
        open_store("nobody://user:secret@host/", StoreOptions())
