"""The tree in memory, and the one way to change it: :meth:`Tree.apply`, which cannot fail.

It checks neither whether a change is allowed nor whether it is stored: planning and the pipeline have done that. An
inode without links is kept as long as the kernel has references to it.
"""

import errno
from collections.abc import Callable, Iterable

from vfsd.errors import FsError
from vfsd.tree.change import (
    ROOT,
    Attributes,
    Change,
    DropChunks,
    DropEntry,
    DropInode,
    Op,
    PutChunks,
    PutEntry,
    PutInode,
)
from vfsd.tree.inode import Directory, Entry, Inode

MILLISECOND = 1_000_000
"""Nanoseconds in a millisecond, the unit in which many programs compare times."""

_MANY = 256
"""Chunks (4 MiB) that may be freed at once, which takes less than a millisecond."""


def look_alike(one_ns: int, other_ns: int) -> bool:
    """Return whether two times (ns) may be equal to a program that compares milliseconds.

    Most programs cut a time off to its millisecond. Node's ``Stats.mtime`` rounds it. Both are taken into account.
    """
    half = MILLISECOND // 2
    cut_off = one_ns // MILLISECOND == other_ns // MILLISECOND
    return cut_off or (one_ns + half) // MILLISECOND == (other_ns + half) // MILLISECOND


def next_different(time_ns: int) -> int:
    """Return the first time (ns) after *time_ns* that does not :func:`look_alike`."""
    half = MILLISECOND // 2
    cut_off = (time_ns // MILLISECOND + 1) * MILLISECOND
    rounded = ((time_ns + half) // MILLISECOND + 1) * MILLISECOND - half
    return max(cut_off, rounded)


class Tree:
    """All inodes of a scope by number.

    ``next_ino`` is the lowest inode number above all that were ever used. ``content_bytes`` is the size of all chunks.
    ``discard`` gets many chunks that were removed together: whoever sets it frees them when it likes.
    """

    def __init__(self) -> None:
        self.inodes: dict[int, Inode] = {}
        self.next_ino = ROOT + 1
        self.content_bytes = 0
        self.discard: Callable[[dict[int, bytes]], None] = _free

    # --- reading

    def inode(self, ino: int) -> Inode:
        """Return inode *ino*. Errors: ESTALE (there is none), which makes the kernel look the name up again."""
        try:
            return self.inodes[ino]
        except KeyError:
            raise FsError(errno.ESTALE) from None

    def directory(self, ino: int) -> Directory:
        """Return what directory *ino* contains. Errors: ENOTDIR, ESTALE."""
        directory = self.inode(ino).directory
        if directory is None:
            raise FsError(errno.ENOTDIR)
        return directory

    def child(self, parent: int, name: bytes) -> Inode | None:
        """Return the inode of *name* in directory *parent*, or None. Errors: ENOTDIR, ESTALE."""
        entry = self.directory(parent).entries.get(name)
        return None if entry is None else self.inodes[entry.ino]

    def is_below(self, ino: int, ancestor: int) -> bool:
        """Whether directory *ino* is *ancestor* or lies anywhere below it."""
        while ino != ancestor:
            if ino == ROOT:
                return False
            ino = self.directory(ino).parent
        return True

    # --- changing

    def allocate(self) -> int:
        """Return an inode number that has never been used. The caller need not use it."""
        self.next_ino += 1
        return self.next_ino - 1

    def apply(self, change: Change) -> None:
        """Apply *change*, which was planned against this state of the tree."""
        self.replay(change.ops)

    def replay(self, ops: Iterable[Op]) -> None:
        """Apply *ops* one after another. Hydration does this with what a store has."""
        for op in ops:
            match op:
                case PutInode():
                    self._put_inode(op.ino, op.attributes)
                case PutEntry():
                    self._put_entry(op)
                case PutChunks():
                    self._put_chunks(self.inodes[op.ino], op)
                case DropEntry():
                    self._drop_entry(op)
                case DropChunks():
                    self._drop_chunks(self.inodes[op.ino], op.numbers)
                case DropInode():
                    self._put_inode(op.ino, op.attributes)
                    self.discard_if_unused(op.ino)

    def discard_if_unused(self, ino: int) -> None:
        """Remove inode *ino* if it has neither a name nor references of the kernel."""
        inode = self.inodes.get(ino)
        if inode is not None and inode.is_orphan and not inode.lookups:
            self._drop_chunks(inode, None)
            del self.inodes[ino]

    def _put_inode(self, ino: int, attributes: Attributes) -> None:
        inode = self.inodes.get(ino)
        if inode is None:
            self.inodes[ino] = Inode(ino, attributes)
            self.next_ino = max(self.next_ino, ino + 1)
            return
        if inode.shown and not look_alike(inode.attributes.mtime_ns, attributes.mtime_ns):
            inode.shown = False
        inode.attributes = attributes

    def _put_entry(self, op: PutEntry) -> None:
        directory, child = self._directory(op.parent), self.inodes[op.ino]
        self._remove_parent(directory, op.name)
        directory.put(op.name, Entry(op.ino, op.cookie))
        if child.directory is not None:
            child.directory.parent = op.parent
        else:
            _add_parent(child, directory)

    def _drop_entry(self, op: DropEntry) -> None:
        directory = self._directory(op.parent)
        self._remove_parent(directory, op.name)
        directory.drop(op.name)

    def _remove_parent(self, directory: Directory, name: bytes) -> None:
        """Remove one mention of *directory* from ``parents`` of the inode that *name* leads to, if there is one."""
        entry = directory.entries.get(name)
        child = None if entry is None else self.inodes[entry.ino]
        if child is None or child.directory is not None:
            return
        left = child.parents
        if isinstance(left, tuple):
            child.parents = ()
            return
        (ino,) = directory.as_parents  # the number of the directory itself
        left[ino] -= 1
        if not left[ino]:
            del left[ino]
        if len(left) == 1:
            (last,) = left
            child.parents = self._directory(last).as_parents if left[last] == 1 else left

    def _directory(self, ino: int) -> Directory:
        directory = self.inodes[ino].directory
        assert directory is not None, "planning and hydration check that a parent is a directory"
        return directory

    def _put_chunks(self, inode: Inode, op: PutChunks) -> None:
        for number, chunk in op.chunks.items():
            self.content_bytes += len(chunk) - len(inode.chunks.get(number, b""))
            inode.chunks[number] = bytes(chunk)  # a view is copied; bytes are not copied again

    def _drop_chunks(self, inode: Inode, numbers: tuple[int, ...] | None) -> None:
        present = inode.chunks
        if numbers is None:
            removed, inode.chunks = present, {}
        else:
            removed = {number: present.pop(number) for number in numbers if number in present}
        self.content_bytes -= sum(map(len, removed.values()))
        if len(removed) > _MANY:
            self.discard(removed)


def _free(removed: dict[int, bytes]) -> None:
    """Let go of *removed*, which nobody else has."""
    removed.clear()


def _add_parent(child: Inode, directory: Directory) -> None:
    """Add one mention of *directory* to ``parents`` of *child*, which is no directory."""
    present = child.parents
    if not present:
        child.parents = directory.as_parents
        return
    if isinstance(present, tuple):
        present = child.parents = dict.fromkeys(present, 1)
    (ino,) = directory.as_parents
    present[ino] = present.get(ino, 0) + 1
