"""A scope with seeds, without a mount. At any moment its store must hold what memory holds, except the seeds."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import trio.testing

from tests.support.scopes import ScopeInMemory, scope_in_memory
from tests.tree.rebuild import check_indexes, check_sound, directories_with
from vfsd.files.resolve import PathResolver
from vfsd.files.seed import Seeding
from vfsd.files.write import FileWriter
from vfsd.scope.hooks import NoKernelCache
from vfsd.scope.hydrate import hydrate
from vfsd.seeds.below import and_above
from vfsd.seeds.directory_mtime import DirectoryTimes
from vfsd.seeds.frontmatter import SKILL
from vfsd.seeds.index import SeedIndex
from vfsd.seeds.root_references import RootReferences
from vfsd.store.base import ClaimTerms
from vfsd.store.memory import MemoryStore
from vfsd.tree.change import ROOT, Attributes, PutChunks, PutEntry, PutInode
from vfsd.tree.inode import Entry, Inode
from vfsd.tree.tree import Tree

OFFERED = (b"references", b"a", b"b", b"c")
"""The directories of skills that are answered at the root: those that the tests use."""


class StoredInode(NamedTuple):
    """One inode as the store should have it. A directory has no times here: a seeding changes them in memory only."""

    attributes: Attributes
    chunks: dict[int, bytes]
    entries: dict[bytes, Entry]


class SeededScope:
    """A scope in a store in memory, without a kernel."""

    def __init__(self, scope: ScopeInMemory, *, keep: bool = False) -> None:
        self.tree, self.store = scope.tree, scope.store
        self.volume, self.overlay = scope.volume, scope.overlay
        self.directory_times = scope.seeded.directory_times
        self.references = RootReferences(self.tree, self.overlay, OFFERED)
        self.paths = PathResolver(self.tree, b"/mnt")
        self.seeding = Seeding(scope.seeded, self.tree, self.paths, keep=keep)
        self.files = FileWriter(self.volume, self.tree, self.paths, NoKernelCache().forget)

    def inode(self, path: bytes) -> Inode:
        """Return what is at *path*."""
        return self.paths.find(path, follow=False).existing()

    async def check(self) -> None:
        """Assert that memory is sound, and that the store hydrates without damage to memory without the seeds."""
        check_sound(self._without_shadows())
        check_indexes(self.tree)
        if self.directory_times is not None:
            assert self.directory_times.skills == directories_with(self.tree, SKILL)
            _check_counts(self.tree, self.directory_times)
        _check_answers(self)
        found = await hydrate(self.store, "scope", lambda _done, _total: None)
        assert stored_of(found, SeedIndex(found)) == stored_of(self.tree, self.overlay.index)
        _check_index(self.tree, self.overlay.index)

    def _without_shadows(self) -> Tree:
        """Return the stored part of the tree, with the shadowed entries: then all links are there."""
        restored = Tree()
        restored.next_ino = self.tree.next_ino
        stored = stored_of(self.tree, self.overlay.index)
        for ino, stored_inode in stored.items():
            restored.replay([PutInode(ino, stored_inode.attributes), PutChunks(ino, stored_inode.chunks)])
        for ino, stored_inode in stored.items():
            for name, entry in sorted(stored_inode.entries.items(), key=lambda pair: pair[1].cookie):
                restored.replay([PutEntry(ino, name, *entry)])
        return restored


def stored_of(tree: Tree, index: SeedIndex) -> dict[int, StoredInode]:
    """Return what of *tree* is stored, as *index* says."""
    return {
        ino: _stored_inode(ino, inode, index)
        for ino, inode in tree.inodes.items()
        if ino not in index.homes and not inode.is_orphan
    }


def _stored_inode(ino: int, inode: Inode, index: SeedIndex) -> StoredInode:
    if inode.directory is None:
        return StoredInode(inode.attributes, dict(inode.chunks), {})
    hidden = {key.name: entry for key, entry in index.shadowed.items() if key.parent == ino}
    seen = {name: entry for name, entry in inode.directory.entries.items() if entry.ino not in index.homes}
    links = inode.attributes.nlink - len(index.subdirectories(ino))
    return StoredInode(inode.attributes._replace(nlink=links, mtime_ns=0, ctime_ns=0), {}, {**seen, **hidden})


def _check_index(tree: Tree, index: SeedIndex) -> None:
    """Assert that the index has every seed under its key, and nothing else."""
    named = {
        entry.ino: (ino, name)
        for ino, inode in tree.inodes.items()
        if inode.directory is not None
        for name, entry in inode.directory.entries.items()
        if entry.ino in index.homes
    }
    assert named == {ino: tuple(home) for ino, home in index.homes.items()}
    size = sum(len(chunk) for ino in index.homes for chunk in tree.inode(ino).chunks.values())
    assert index.content_bytes == size
    assert set(index.shadowed) <= set(index.homes.values())
    assert all(entry.ino in tree.inodes for entry in index.shadowed.values())
    assert ROOT not in index.homes
    for top in (ino for ino, inode in tree.inodes.items() if inode.directory is not None and not inode.is_orphan):
        below = {ino for ino, home in index.homes.items() if tree.is_below(home.parent, top)}
        assert set(index.below(top)) == below
    for entry in index.shadowed.values():
        assert index.hidden_at(entry.ino) == {key for key, each in index.shadowed.items() if each.ino == entry.ino}


def _check_counts(tree: Tree, times: DirectoryTimes) -> None:
    """Assert that the rule for directory times has counted the skills below every directory."""
    counted = Counter(above for skill in directories_with(tree, SKILL) for above in and_above(tree, skill))
    assert times.skills_below == counted


def _check_answers(scope: SeededScope) -> None:
    """Assert that the answers which *scope* has kept are those that somebody gets who asks for the first time."""
    fresh = RootReferences(scope.tree, scope.overlay, OFFERED)
    for directory, _ in scope.overlay.skills():
        skill = scope.overlay.skill(directory)
        assert skill is not None
        for name, ino in skill.parts:
            inode = scope.tree.inodes.get(ino)
            entries = inode.directory.entries if inode is not None and inode.directory is not None else {}
            for names in ((name,), *((name, below) for below in (*entries, b"none"))):
                assert scope.references.meaning(names) == fresh.meaning(names)


@asynccontextmanager
async def seeded_scope(
    *,
    keep: bool = False,
    memory: int = 0,
    terms: ClaimTerms = ClaimTerms(),  # noqa: B008 (immutable)
    store: MemoryStore | None = None,
) -> AsyncIterator[SeededScope]:
    """Yield a new scope that can be seeded."""
    async with scope_in_memory(store, terms=terms, memory=memory) as scope:
        yield SeededScope(scope, keep=keep)


async def settled(scope: SeededScope) -> None:
    """Return when no change is in doubt any longer and the store has every truncation."""
    await trio.testing.wait_all_tasks_blocked()
    await scope.volume.drain()
