"""A mounted scope with seeds, and what its store must hold at any moment: what memory holds, but for the seeds."""

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
from vfsd.seeds.frontmatter import SKILL
from vfsd.seeds.index import SeedIndex
from vfsd.store.base import ClaimTerms
from vfsd.store.memory import MemoryStore
from vfsd.tree.change import ROOT, Attributes, PutChunks, PutEntry, PutInode
from vfsd.tree.inode import Entry, Inode
from vfsd.tree.tree import Tree


class Held(NamedTuple):
    """One inode. A directory's times are left out: a seeding moves them in memory alone."""

    attributes: Attributes
    chunks: dict[int, bytes]
    entries: dict[bytes, Entry]


class Mounted:
    """A scope in a store in memory, without a kernel."""

    def __init__(self, scope: ScopeInMemory, *, keep: bool = False) -> None:
        self.tree, self.store = scope.tree, scope.store
        self.volume, self.overlay = scope.volume, scope.overlay
        self.directory_times = scope.seeded.directory_times
        self.paths = PathResolver(self.tree, b"/mnt")
        self.seeding = Seeding(scope.seeded, self.tree, self.paths, keep=keep)
        self.files = FileWriter(self.volume, self.tree, self.paths, NoKernelCache().forget)

    def inode(self, path: bytes) -> Inode:
        """Return what is at *path*."""
        return self.paths.find(path, follow=False).existing()

    async def check(self) -> None:
        """Assert that memory is sound, and that what is stored hydrates without damage and is memory less the seeds."""
        check_sound(self._without_shadows())
        check_indexes(self.tree)
        if self.directory_times is not None:
            assert self.directory_times.skills == directories_with(self.tree, SKILL)
        found = await hydrate(self.store, "scope", lambda _done, _total: None)
        assert stored_of(found, SeedIndex()) == stored_of(self.tree, self.overlay.index)
        _check_books(self.tree, self.overlay.index)

    def _without_shadows(self) -> Tree:
        """Return the tree with every stored entry in place again: then all links are there."""
        restored = Tree()
        restored.next_ino = self.tree.next_ino
        stored = stored_of(self.tree, self.overlay.index)
        for ino, held in stored.items():
            restored.replay([PutInode(ino, held.attributes), PutChunks(ino, held.chunks)])
        for ino, held in stored.items():
            for name, entry in sorted(held.entries.items(), key=lambda pair: pair[1].cookie):
                restored.replay([PutEntry(ino, name, *entry)])
        return restored


def stored_of(tree: Tree, index: SeedIndex) -> dict[int, Held]:
    """Return what of *tree* is stored, as *index* says."""
    return {
        ino: _held(ino, inode, index)
        for ino, inode in tree.inodes.items()
        if ino not in index.homes and not inode.is_orphan
    }


def _held(ino: int, inode: Inode, index: SeedIndex) -> Held:
    if inode.directory is None:
        return Held(inode.attributes, dict(inode.chunks), {})
    hidden = {place.name: entry for place, entry in index.shadowed.items() if place.parent == ino}
    seen = {name: entry for name, entry in inode.directory.entries.items() if entry.ino not in index.homes}
    links = inode.attributes.nlink - len(index.subdirectories(ino))
    return Held(inode.attributes._replace(nlink=links, mtime_ns=0, ctime_ns=0), {}, {**seen, **hidden})


def _check_books(tree: Tree, index: SeedIndex) -> None:
    """Assert that every seed is where the index has it, and nothing else is in it."""
    named = {
        entry.ino: (ino, name)
        for ino, inode in tree.inodes.items()
        if inode.directory is not None
        for name, entry in inode.directory.entries.items()
        if entry.ino in index.homes
    }
    assert named == {ino: tuple(home) for ino, home in index.homes.items()}
    held = sum(len(chunk) for ino in index.homes for chunk in tree.inode(ino).chunks.values())
    assert index.content_bytes == held
    assert set(index.shadowed) <= set(index.homes.values())
    assert all(entry.ino in tree.inodes for entry in index.shadowed.values())
    assert ROOT not in index.homes


@asynccontextmanager
async def mounted(
    *,
    keep: bool = False,
    memory: int = 0,
    terms: ClaimTerms = ClaimTerms(),  # noqa: B008 (immutable)
    store: MemoryStore | None = None,
) -> AsyncIterator[Mounted]:
    """Give a new scope, mounted."""
    async with scope_in_memory(store, terms=terms, memory=memory) as scope:
        yield Mounted(scope, keep=keep)


async def settled(scope: Mounted) -> None:
    """Return when no change is in doubt any more, and the store has every truncation."""
    await trio.testing.wait_all_tasks_blocked()
    await scope.volume.drain()
