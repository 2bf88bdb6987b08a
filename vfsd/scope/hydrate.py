"""Hydration: loading a stored scope into memory, completely or not at all.

All records of a scope are checked against each other before a mount may show them. An error names the damaged records
and the remedy. A tree with parts missing is never mounted silently: only with *salvage* undamaged parts are kept, for
reading only.
"""

import gc
import logging
import stat
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import TypeAlias

import trio

from vfsd.errors import ScopeChanged, ScopeDamaged
from vfsd.store.base import Batch, Damage, Record, Store
from vfsd.tree.change import (
    CHUNK_SIZE,
    ROOT,
    Attributes,
    Chunk,
    DropChunks,
    DropEntry,
    PutChunks,
    PutEntry,
    PutInode,
)
from vfsd.tree.inode import Inode
from vfsd.tree.tree import Tree

_log = logging.getLogger(__name__)

Report: TypeAlias = Callable[[int, int], None]
"""Called with the number of records that have been read, and the total number."""

_COOKIE = attrgetter("cookie")
_ATTEMPTS = 5
_NAMED_MAX = 5
_ROOT_IN_PLACE = Attributes(stat.S_IFDIR | 0o755, 2, 0, 0, 0, 0, 0, 0, 0)
"""The attributes of the root directory in a salvaged scope that has lost its own."""


async def hydrate(store: Store, scope: str, report: Report, *, salvage: bool = False) -> Tree:
    """Return the tree of *scope*. Raises ScopeDamaged, and what :meth:`Store.load` raises.

    A scope that is read without a claim may be written meanwhile. Then it is read again, a few times.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return await _hydrate(store, scope, report, salvage=salvage)
        except ScopeChanged:
            if attempt == _ATTEMPTS - 1:
                raise
            await trio.sleep(attempt / 2)
    raise AssertionError("unreachable")


async def _hydrate(store: Store, scope: str, report: Report, *, salvage: bool) -> Tree:
    builder = _TreeBuilder(partial(store.key_of, scope))
    gc.disable()  # searching millions of small objects for cycles takes longer than loading them
    try:
        async for batch in store.load(scope):
            builder.add(batch)
            report(batch.done, batch.total)
        tree = builder.finish()
    finally:
        gc.enable()
        gc.freeze()
    if builder.damages:
        _handle_damages(scope, builder.damages, salvage=salvage)
    return tree


def _handle_damages(scope: str, damages: list[Damage], *, salvage: bool) -> None:
    """Refuse a damaged scope, unless it is to be salvaged: then log each damage. Raises ScopeDamaged."""
    if salvage:
        for damage in damages:
            _log.warning("scope %s, left out: %s: %s", scope, damage.key, damage.why)
        return
    named = "; ".join(f"{damage.key}: {damage.why}" for damage in damages[:_NAMED_MAX])
    more = f"; and {len(damages) - _NAMED_MAX} more" if len(damages) > _NAMED_MAX else ""
    raise ScopeDamaged(
        f"scope {scope} has {len(damages)} damaged records: {named}{more}; restore them from a backup,"
        " or mount with --salvage to read what is left"
    )


class _TreeBuilder:
    """Builds a tree from batches, and collects the damages. Records of one kind may come in any order.

    *key_of* returns the store's key of a record.
    """

    def __init__(self, key_of: Callable[[Record], str]) -> None:
        self.tree = Tree()
        self.damages: list[Damage] = []
        self._key_of = key_of
        self._entries: dict[tuple[int, bytes], PutEntry] = {}
        self._links: defaultdict[int, int] = defaultdict(int)
        self._named: set[int] = set()

    def add(self, batch: Batch) -> None:
        """Add a batch. A record may come twice. Entries wait for :meth:`finish`, which adds them by their cookies."""
        self.damages += batch.damages
        self.tree.next_ino = max(self.tree.next_ino, batch.next_ino)
        self.tree.replay(op for op in batch.ops if isinstance(op, PutInode))
        self._entries.update(((op.parent, op.name), op) for op in batch.ops if isinstance(op, PutEntry))
        self.tree.replay(self._sound_content(batch))

    def _sound_content(self, batch: Batch) -> Iterator[PutChunks]:
        """Yield the content in *batch* that lies within a file, and record the rest as damage."""
        for op in batch.ops:
            if not isinstance(op, PutChunks):
                continue
            inode = self.tree.inodes.get(op.ino)
            if inode is None:
                self._damaged(op, f"there is no inode {op.ino}")
            elif inode.attributes.is_regular and _end(op.chunks, max(op.chunks)) <= inode.attributes.size:
                yield op
            else:
                sound = {number: chunk for number, chunk in op.chunks.items() if self._is_within(inode, op, number)}
                yield PutChunks(op.ino, sound)

    def _is_within(self, inode: Inode, op: PutChunks, number: int) -> bool:
        """Whether the chunk with this *number* ends within its file. A later growth would reveal what is outside."""
        size = inode.attributes.size if inode.attributes.is_regular else 0
        if _end(op.chunks, number) <= size:
            return True
        return self._damaged(PutChunks(op.ino, {number: b""}), f"it lies outside the file's {size} bytes")

    def finish(self) -> Tree:
        """Add the entries, and check that every inode has as many links as it records. Return the tree.

        Somebody may have seen any modification time before this mount and may remember it: so all count as shown.
        """
        if not self._is_new():
            self._check_root()
            entries = sorted(self._entries.values(), key=_COOKIE)
            self.tree.replay(entry for entry in entries if self._is_sound_entry(entry))
            self._check_links()
        if self.damages:
            self._remove_unreachable()
        for inode in self.tree.inodes.values():
            inode.shown = True
        return self.tree

    def _is_new(self) -> bool:
        """Whether nothing was ever made in the scope, not even its root directory."""
        return not (self.tree.inodes or self._entries or self.damages) and self.tree.next_ino == ROOT + 1

    def _check_root(self) -> None:
        """Check that there is a root directory. A missing one is replaced, so that what is below it can be salvaged."""
        root = self.tree.inodes.get(ROOT)
        if root is None or root.directory is None:
            why = "the root directory is missing" if root is None else "it is no directory"
            self._damaged(PutInode(ROOT, _ROOT_IN_PLACE), why)
            self.tree.inodes[ROOT] = Inode(ROOT, _ROOT_IN_PLACE)

    def _is_sound_entry(self, entry: PutEntry) -> bool:
        parent_ino, _, ino, cookie = entry
        parent, child = self.tree.inodes.get(parent_ino), self.tree.inodes.get(ino)
        if parent is None or parent.directory is None:
            return self._damaged(entry, f"inode {parent_ino} is no directory")
        if child is None:
            return self._damaged(entry, f"there is no inode {ino}")
        if cookie < parent.directory.next_cookie:
            return self._damaged(entry, f"another name in the directory has the cookie {cookie}")
        if child.directory is None:
            self._links[ino] += 1
            return True
        if ino in self._named:
            return self._damaged(entry, f"directory {ino} has a name already")
        self._named.add(ino)
        self._links[parent_ino] += 1
        self._links[ino] += 2
        return True

    def _check_links(self) -> None:
        self._links[ROOT] += 2
        for ino, inode in self.tree.inodes.items():
            recorded, found = inode.attributes.nlink, self._links.get(ino, 0)
            if recorded != found:
                self._damaged(PutInode(ino, inode.attributes), f"{recorded} links recorded, {found} found")
        for ino in self._unreachable():
            self._damaged(PutInode(ino, self.tree.inodes[ino].attributes), "a directory that is not below the root")

    def _remove_unreachable(self) -> None:
        """Remove what no path leads to. A walk upwards from it would never reach the root."""
        lost = set(self._unreachable())
        for ino in lost:
            entries = tuple(self.tree.directory(ino).entries)
            self.tree.replay(DropEntry(ino, name) for name in entries)
        for ino, inode in tuple(self.tree.inodes.items()):
            if ino in lost or (inode.directory is None and not inode.parents):
                self.tree.replay((DropChunks(ino, None),))
                del self.tree.inodes[ino]

    def _unreachable(self) -> Iterator[int]:
        """Yield the directories that are not below the root: they have no name, or are in or below a circle."""
        reached, lost = {ROOT}, set[int]()
        directories = (ino for ino, inode in self.tree.inodes.items() if inode.directory is not None)
        for start in directories:
            path: set[int] = set()
            ino = start
            while ino not in reached and ino not in lost and ino not in path:
                path.add(ino)
                ino = self.tree.directory(ino).parent
            if ino in reached:
                reached |= path
            else:
                lost |= path
        yield from lost

    def _damaged(self, record: Record, why: str) -> bool:
        self.damages.append(Damage(self._key_of(record), why))
        return False


def _end(chunks: Mapping[int, Chunk], number: int) -> int:
    """Return where in its file the chunk with this *number* ends."""
    return number * CHUNK_SIZE + len(chunks[number])
