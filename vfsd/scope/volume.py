"""What a mounted scope can do: lookups, attributes, listings and content from memory; changes through `Changes`.

A reader never awaits and never takes a turn. Nothing here knows FUSE or Redis, and nobody else plans a change.
"""

import errno
import stat

import trio

from vfsd import clock
from vfsd.errors import FsError
from vfsd.scope.memory_limit import MemoryLimit
from vfsd.scope.pipeline import Pipeline
from vfsd.store.base import Capacity, Claim, Store
from vfsd.tree.change import ROOT, Attributes, Change, PutInode
from vfsd.tree.chunks import read_chunks
from vfsd.tree.draft import check_name
from vfsd.tree.inode import Inode
from vfsd.tree.plan_attributes import NewAttributes, plan_removexattr, plan_setattr, plan_setxattr
from vfsd.tree.plan_content import plan_write
from vfsd.tree.plan_names import EntryKey, NewInode, plan_create, plan_link, plan_rename, plan_rmdir, plan_unlink
from vfsd.tree.tree import Tree

_SHAPE = 0
"""Stands for who is below whom, where a turn is taken; no inode has this number."""


class Volume:
    """A scope in memory and the store behind it. Arguments as for :class:`~vfsd.scope.pipeline.Changes`."""

    def __init__(
        self, tree: Tree, store: Store, claim: Claim | None, nursery: trio.Nursery, memory: MemoryLimit
    ) -> None:
        self.tree = tree
        self.store = store
        self.changes = Pipeline(tree, store, claim, nursery, memory)
        self._capacity = Capacity(0, 0)
        self._bytes_then = 0

    # --- reading: never awaits

    def lookup(self, key: EntryKey) -> Inode | None:
        """Return what is at *place*, or None. Errors: ENAMETOOLONG, ENOTDIR, ESTALE.

        ``.`` is the inode itself, of whatever kind, and ``..`` a directory's parent: so the kernel finds by number
        what a file handle means (:manpage:`open_by_handle_at(2)`, NFS), long after it has forgotten the name.
        """
        check_name(key.name)
        if key.name == b".":
            return self.tree.inode(key.parent)
        if key.name == b"..":
            return self.tree.inode(self.tree.directory(key.parent).parent)
        return self.tree.child(*key)

    def read(self, ino: int, offset: int, length: int) -> bytes:
        """Return at most *length* bytes of a file from *offset*. Errors: ESTALE."""
        inode = self.tree.inode(ino)
        return read_chunks(inode.chunks, inode.attributes.size, offset, length)

    def xattr(self, ino: int, name: bytes) -> bytes:
        """Return the value of an extended attribute. Errors: ENODATA, ESTALE."""
        for key, value in self.tree.inode(ino).attributes.xattrs:
            if key == name:
                return value
        raise FsError(errno.ENODATA)

    def room(self) -> Capacity:
        """Return the room in bytes: the scope's limit, or the store's as last measured, less growth since."""
        used = self.used
        total = self._capacity.total
        free = min(total, max(0, self._capacity.free - (used - self._bytes_then)))
        most = self.changes.limits.max_bytes
        return Capacity(most, min(free, max(0, most - used))) if most else Capacity(total, free)

    async def measure_room(self) -> None:
        """Ask the store how much room it has, for :meth:`room`. Raises StoreError."""
        self._capacity = await self.store.capacity()
        self._bytes_then = self.used

    @property
    def files(self) -> int:
        """How many files of all kinds the scope holds, without seeds."""
        return len(self.tree.inodes) - len(self.changes.seeds.ledger.homes)

    @property
    def used(self) -> int:
        """How many bytes of content the scope holds, without seeds."""
        return self.tree.content_bytes - self.changes.seeds.ledger.content_bytes

    # --- changing names

    async def create(self, key: EntryKey, new: NewInode) -> Inode:
        """Make a new inode of any kind at *place* and return it. Errors: see :func:`plan_create`."""
        ino = self.tree.allocate()
        await self.changes.make(lambda: (key.parent,), lambda now_ns: plan_create(self.tree, key, ino, new, now_ns))
        return self.tree.inodes[ino]

    async def link(self, ino: int, key: EntryKey) -> Inode:
        """Make *place* another name of inode *ino* and return it. Errors: see :func:`plan_link`."""
        await self.changes.make(lambda: (key.parent, ino), lambda now_ns: plan_link(self.tree, ino, key, now_ns))
        return self.tree.inode(ino)

    async def unlink(self, key: EntryKey) -> Change:
        """Remove the name at *place*. Errors: see :func:`plan_unlink`."""
        return await self.changes.make(lambda: self._touched(key), lambda now_ns: plan_unlink(self.tree, key, now_ns))

    async def rmdir(self, key: EntryKey) -> Change:
        """Remove the empty directory at *place*. Errors: see :func:`plan_rmdir`."""
        return await self.changes.make(lambda: self._touched(key), lambda now_ns: plan_rmdir(self.tree, key, now_ns))

    async def rename(self, source: EntryKey, target: EntryKey, flags: int) -> Change:
        """Move *source* to *target*; *flags* as in :manpage:`renameat2(2)`. Errors: see :func:`plan_rename`."""
        return await self.changes.make(
            lambda: self._touched_by_rename(source, target),
            lambda now_ns: plan_rename(self.tree, source, target, flags, now_ns),
        )

    def _touched_by_rename(self, source: EntryKey, target: EntryKey) -> tuple[int, ...]:
        """Return what a rename touches; between directories, one that moves a directory touches the shape of the tree.

        Two such moves, each sound by itself, can make a circle together: they must not be under way side by side. The
        kernel sees to that for as long as both are unanswered, not when the first is in doubt. Seeds below a directory
        that moves are touched too, for they become stored.
        """
        inos = (*self._touched(source), *self._touched(target))
        children = [self.tree.child(*key) for key in (source, target)]
        moved = [child.ino for child in children if child is not None and child.directory is not None]
        seeds = (ino for top in moved for ino in self.changes.seeds.ledger.below(self.tree, top))
        shape = (_SHAPE,) if moved and source.parent != target.parent else ()
        return (*inos, *seeds, *shape)

    def _touched(self, key: EntryKey) -> tuple[int, ...]:
        """Return the directory and, if there is one, the inode that a change at *place* touches."""
        child = self.tree.child(*key)
        return (key.parent,) if child is None else (key.parent, child.ino)

    # --- changing one inode

    async def setattr(self, ino: int, new: NewAttributes) -> Inode:
        """Give *ino* new attributes, all in one change. Errors: see :func:`plan_setattr`."""
        await self.changes.make(lambda: (ino,), lambda now_ns: plan_setattr(self.tree, ino, new, now_ns))
        return self.tree.inode(ino)

    async def write(self, ino: int, offset: int, data: bytes) -> None:
        """Write *data* at *offset*, all of it or nothing. Errors: see :func:`plan_write`."""
        await self.changes.make(lambda: (ino,), lambda now_ns: plan_write(self.tree, ino, offset, data, now_ns))

    async def setxattr(self, ino: int, name: bytes, value: bytes) -> None:
        """Set an extended attribute. Errors: see :func:`plan_setxattr`."""
        await self.changes.make(lambda: (ino,), lambda now_ns: plan_setxattr(self.tree, ino, name, value, now_ns))

    async def removexattr(self, ino: int, name: bytes) -> None:
        """Remove an extended attribute. Errors: see :func:`plan_removexattr`."""
        await self.changes.make(lambda: (ino,), lambda now_ns: plan_removexattr(self.tree, ino, name, now_ns))

    async def found(self, uid: int, gid: int) -> None:
        """Make the root directory of a new scope, owned by *uid* and *gid*."""
        now_ns = clock.now()
        root = Attributes(stat.S_IFDIR | 0o755, 2, uid, gid, 0, 0, now_ns, now_ns, now_ns)
        await self.changes.make(lambda: (ROOT,), lambda _now_ns: Change((PutInode(ROOT, root),), grows=True))
