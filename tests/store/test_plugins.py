"""Stores of other packages: a store is one package with one entry point in ``vfsd.stores``, named after its scheme."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stores import Backend, claimed, directory, regular, remote_owner, stored
from vfsd.errors import Fenced, ScopeBusy, ScopeMissing, UsageError
from vfsd.store.base import ClaimTerms, Store, StoreOptions
from vfsd.store.url import SCHEMES, open_store
from vfsd.tree.change import ROOT, DropChunks, DropEntry, DropInode, PutChunks, PutEntry, PutInode

VFSD = Path(__file__).parents[2] / "vfsd"


class PluginBackend(Backend):
    """The scopes that the store of an entry point keeps under *url*."""

    def __init__(self, url: str) -> None:
        self._url = url

    def open(self, options: StoreOptions = StoreOptions()) -> Store:  # noqa: B008 (immutable)
        return open_store(self._url, options)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str) -> PluginBackend:
    """Install the metadata of a package with a store, and return a backend that uses it."""
    package = tmp_path / "example_store-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: example-store\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[vfsd.stores]\nexample = tests.store.example_store:open_store\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return PluginBackend(f"example:{scope}")


def test_an_entry_point_serves_the_scheme_of_its_name(plugin: PluginBackend, scope: str) -> None:
    assert plugin.open().label == f"example:{scope}"


async def test_a_store_of_an_entry_point_is_claimed_committed_to_and_loaded(plugin: PluginBackend, scope: str) -> None:
    with pytest.raises(ScopeMissing):
        await stored(plugin, scope)
    async with claimed(plugin, scope) as writer:
        assert writer.claim.created
        await writer.commit(PutInode(ROOT, directory()), PutInode(2, regular()), PutEntry(ROOT, b"a", 2, 3))
        await writer.commit(PutChunks(2, {0: b"x", 1: b"y"}), PutInode(3, regular()), PutEntry(ROOT, b"b", 3, 4))
        await writer.commit(DropChunks(2, (0,)), DropEntry(ROOT, b"b"), DropInode(3, regular()), grows=False)
    async with claimed(plugin, scope, terms=ClaimTerms(create=False)) as writer:
        assert not writer.claim.created
        found = await stored(plugin, scope)
    assert found.inodes == {ROOT: directory(), 2: regular()}
    assert found.entries == {(ROOT, b"a"): (2, 3)}
    assert found.chunks == {(2, 1): b"y"}
    assert (found.next_ino, found.damages) == (4, [])


async def test_a_store_of_an_entry_point_refuses_and_fences_owners(plugin: PluginBackend, scope: str) -> None:
    async with claimed(plugin, scope, remote_owner("/mnt/first")) as first:
        with pytest.raises(ScopeBusy, match="/mnt/first"):
            async with claimed(plugin, scope):
                pass
        async with claimed(plugin, scope, terms=ClaimTerms(take_over=True)) as second:
            await second.commit(PutInode(2, regular()))
            with pytest.raises(Fenced):
                await first.commit(PutInode(3, regular()))
    assert set((await stored(plugin, scope)).inodes) == {2}


def test_a_scheme_without_a_store_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"unknown scheme 'nobody'; this vfsd knows memory, redis, "):
        open_store("nobody://user:secret@host/", StoreOptions())


# --- nothing else in vfsd knows a scheme

_HELP_TEXTS = {"cli/__init__.py": 1, "cli/mount.py": 1, "cli/scopes.py": 2, "cli/store_option.py": 2}
"""How many texts outside ``vfsd/store`` may show a scheme: the help of ``--store``, and examples."""


def _texts(path: Path) -> Iterator[str]:
    """Yield the string constants in *path* that are not docstrings or other bare strings."""
    tree = ast.parse(path.read_text())
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


def test_only_the_stores_know_schemes() -> None:
    url = re.compile(rf"(?<![\w+])(?:{'|'.join(map(re.escape, SCHEMES))}):(?!\s)")
    found = {
        str(path.relative_to(VFSD)): sum(text in SCHEMES or bool(url.search(text)) for text in _texts(path))
        for path in sorted(VFSD.rglob("*.py"))
        if path.parts[len(VFSD.parts)] != "store"
    }
    assert {name: count for name, count in found.items() if count} == _HELP_TEXTS
