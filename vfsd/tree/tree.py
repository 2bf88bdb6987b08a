"""The tree in memory, and the one way to change it: :meth:`Tree.apply`, which cannot fail.

It does not check whether a change is allowed (planning did) or stored (the pipeline did). An inode without links stays
as long as the kernel has references to it.
"""

import errno
from collections.abc import Iterable

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
from vfsd.tree.inode import Directory, Entry, Inode, look_alike


class Tree:
    """All inodes of a scope by number.

    ``next_ino`` is the next inode number that was never used. ``content_bytes`` is what all files hold.
    """

    def __init__(self) -> None:
        self.inodes: dict[int, Inode] = {}
        self.next_ino = ROOT + 1
        self.content_bytes = 0

    # --- reading

    def inode(self, ino: int) -> Inode:
        """Return inode *ino*; ESTALE if it is gone, so that the kernel looks the name up again."""
        try:
            return self.inodes[ino]
        except KeyError:
            raise FsError(errno.ESTALE) from None

    def directory(self, ino: int) -> Directory:
        """Return the entries of directory *ino*; ESTALE or ENOTDIR."""
        directory = self.inode(ino).directory
        if directory is None:
            raise FsError(errno.ENOTDIR)
        return directory

    def child(self, parent: int, name: bytes) -> Inode | None:
        """Return what *name* means in directory *parent*, or None."""
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
        """Return an inode number that has never been used; one that stays unused is no harm."""
        self.next_ino += 1
        return self.next_ino - 1

    def apply(self, change: Change) -> None:
        """Take *change* into memory. It has been planned against this very state, and is stored."""
        self.replay(change.ops)

    def replay(self, ops: Iterable[Op]) -> None:
        """Take *ops* one after another, as :meth:`apply` and hydration do."""
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
        """Forget inode *ino* once no name leads to it and the kernel does not know it."""
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
        self._leave(directory, op.name)
        directory.put(op.name, Entry(op.ino, op.cookie))
        if child.directory is not None:
            child.directory.parent = op.parent
        else:
            child.parents = (*child.parents, op.parent) if child.parents else directory.as_parents

    def _drop_entry(self, op: DropEntry) -> None:
        directory = self._directory(op.parent)
        self._leave(directory, op.name)
        directory.drop(op.name)

    def _leave(self, directory: Directory, name: bytes) -> None:
        """Take the name *name* in *directory* away from the inode that it means, if it means one."""
        entry = directory.entries.get(name)
        child = None if entry is None else self.inodes[entry.ino]
        if child is None or child.directory is not None:
            return
        left = list(child.parents)
        left.remove(directory.as_parents[0])
        child.parents = self._directory(left[0]).as_parents if len(left) == 1 else tuple(left)

    def _directory(self, ino: int) -> Directory:
        directory = self.inodes[ino].directory
        assert directory is not None, "planning and hydration check that a parent is a directory"
        return directory

    def _put_chunks(self, inode: Inode, op: PutChunks) -> None:
        for number, chunk in op.chunks.items():
            self.content_bytes += len(chunk) - len(inode.chunks.get(number, b""))
            inode.chunks[number] = bytes(chunk)  # which copies nothing that is bytes already

    def _drop_chunks(self, inode: Inode, numbers: tuple[int, ...] | None) -> None:
        for number in tuple(inode.chunks) if numbers is None else numbers:
            self.content_bytes -= len(inode.chunks.pop(number, b""))
