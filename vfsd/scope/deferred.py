"""Truncations by ``open(O_TRUNC)``: memory empties the file at once, the store gets it later.

That is with the next change of the file, or when the file is closed. So a rewrite by open, write
and close is one commit, and a crash in between leaves the old file. Nothing else may wait in this way.
"""

from collections.abc import Iterator

from vfsd.scope.hooks import NOTHING, Effects, Hook, Mutation
from vfsd.tree.change import Change, DropChunks, DropInode, PutInode
from vfsd.tree.tree import Tree


class DeferredWrites(Hook):
    """The files of *tree* whose truncation is still to be stored, by inode number."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._files: set[int] = set()

    def __contains__(self, ino: int) -> bool:
        """Whether the store still has what file *ino* held before it was truncated."""
        return ino in self._files

    def __iter__(self) -> Iterator[int]:
        """Return an iterator over a copy: storing a truncation removes its file."""
        return iter(tuple(self._files))

    def add(self, ino: int) -> None:
        """Record that memory has emptied file *ino*."""
        self._files.add(ino)
        self.active = True

    def clear(self) -> None:
        """Forget all: nothing is stored any more."""
        self._files.clear()
        self.active = False

    def newly_stored_in(self, change: Change) -> set[int]:
        """Return the directories of those truncated files whose present state *change* stores."""
        stored = self._files.intersection(op.ino for op in change.ops if isinstance(op, PutInode))
        return {parent for ino in stored for parent in self._tree.inodes[ino].parents}

    def plan(self, ino: int) -> Change:
        """Plan to store the truncation of *ino*, unless a change has done so."""
        inode = self._tree.inodes.get(ino)
        if inode is None or ino not in self._files:
            return NOTHING
        return Change((PutInode(ino, inode.attributes), DropChunks(ino, None)), grows=False)

    def effects(self, effects: Effects, inos: tuple[int, ...], now_ns: int) -> Effects:
        """See :meth:`Hook.effects`: locked files lose their old content in the same commit."""
        truncated = self._files.intersection(inos)
        if truncated and effects.store.ops:
            ops = (*(DropChunks(ino, None) for ino in truncated), *effects.store.ops)
            effects.store = Change(ops, effects.store.grows)
        return effects

    def applied(self, effects: Effects, inos: tuple[int, ...]) -> Mutation | None:
        """See :meth:`Hook.applied`: files that were stored, or that are gone, wait for nothing."""
        self._files.difference_update(op.ino for op in effects.memory.ops if isinstance(op, DropInode))
        if effects.store.ops:
            self._files.difference_update(inos)
        self.active = bool(self._files)
        return None
