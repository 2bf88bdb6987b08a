"""A mounted scope, and the only way to it from above: lookups and content from memory, changes through the pipeline.

Every change goes through :class:`Volume`. ``files``, ``seeds`` and the kernel cache are handed the tree as well, to
read it and to plan with it. A reader never awaits and never takes a lock. Nothing here knows FUSE, Redis or seeds.
"""

import errno
import stat
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from vfsd.errors import FsError, StoreError
from vfsd.scope.background import BackgroundTasks
from vfsd.scope.deferred import DeferredWrites
from vfsd.scope.hooks import NOTHING, Hook, KernelCache, NoKernelCache, Plan, Touched, Usage
from vfsd.scope.memory_limit import MemoryLimit
from vfsd.scope.pipeline import EffectsT, Pipeline
from vfsd.scope.quota import Quota
from vfsd.store.base import Capacity, Claim, Store
from vfsd.tree.change import ROOT, Attributes, Change, Limits, PutInode
from vfsd.tree.chunks import read_chunks
from vfsd.tree.draft import check_name
from vfsd.tree.inode import Directory, Inode
from vfsd.tree.plan_attributes import (
    IsMember,
    NewAttributes,
    plan_removexattr,
    plan_setattr,
    plan_setxattr,
    plan_truncate,
)
from vfsd.tree.plan_content import plan_write
from vfsd.tree.plan_names import (
    RENAME_WHITEOUT,
    EntryKey,
    NewInode,
    Whiteout,
    plan_create,
    plan_link,
    plan_rename,
    plan_rmdir,
    plan_unlink,
)
from vfsd.tree.tree import Tree

_SHAPE = 0
"""Locked by whatever changes who is below whom. No inode has this number."""


class Backing(NamedTuple):
    """What keeps a scope: the *store*, and the *claim* on the scope; None if it is only read."""

    store: Store
    claim: Claim | None


class Volume:
    """The scope that *tree* holds in memory and *backing* keeps.

    *background* runs what outlives a request. *hooks* take part in every change, in this order; *deferred*, the hook
    for truncations, comes last. *kernel* must forget what a change made untrue. *memory* limits the daemon's memory.
    """

    def __init__(  # noqa: PLR0913 (the parts of a volume, built once and in one place)
        self,
        tree: Tree,
        backing: Backing,
        background: BackgroundTasks,
        *,
        hooks: Sequence[Hook] = (),
        deferred: DeferredWrites | None = None,
        kernel: KernelCache = NoKernelCache(),  # noqa: B008 (it has no state)
        memory: MemoryLimit | None = None,
    ) -> None:
        self._tree = tree
        self._store, self._claim = backing
        self.limits = Limits() if self._claim is None else self._claim.limits
        self._memory = memory or MemoryLimit(0)
        self._background = background
        self._deferred = deferred or DeferredWrites(tree)
        self._hooks = (*hooks, self._deferred)
        quota = Quota(tree, self.limits, self._memory, self._unstored)
        last_ns = max((inode.attributes.ctime_ns for inode in tree.inodes.values()), default=0)
        self._pipeline = Pipeline(tree, self._claim, quota, self._hooks, last_ns, kernel, self._background)
        self._is_retired = False
        self._capacity = Capacity(0, 0)
        self._used_then = 0

    # --- reading: never awaits

    @property
    def inodes(self) -> Mapping[int, Inode]:
        """All inodes by number. For reading."""
        return self._tree.inodes

    def inode(self, ino: int) -> Inode:
        """Return inode *ino*. Errors: ESTALE."""
        return self._tree.inode(ino)

    def directory(self, ino: int) -> Directory:
        """Return the entries of directory *ino*. Errors: ENOTDIR, ESTALE."""
        return self._tree.directory(ino)

    def lookup(self, key: EntryKey) -> Inode | None:
        """Return the inode at *key*, or None. Errors: ENAMETOOLONG, ENOTDIR, ESTALE.

        ``.`` is the inode itself, of any kind, and ``..`` a directory's parent: this is how the kernel finds what a
        file handle means (:manpage:`open_by_handle_at(2)`, NFS) long after it has forgotten the name.
        """
        check_name(key.name)
        if key.name == b".":
            return self._tree.inode(key.parent)
        if key.name == b"..":
            return self._tree.inode(self._tree.directory(key.parent).parent)
        return self._tree.child(*key)

    def read(self, ino: int, offset: int, length: int) -> bytes:
        """Return at most *length* bytes of a file from *offset*. Errors: ESTALE."""
        inode = self._tree.inode(ino)
        return read_chunks(inode.chunks, inode.attributes.size, offset, length)

    def xattr(self, ino: int, name: bytes) -> bytes:
        """Return the value of an extended attribute. Errors: ENODATA, ESTALE."""
        for key, value in self._tree.inode(ino).attributes.xattrs:
            if key == name:
                return value
        raise FsError(errno.ENODATA)

    def forget(self, ino: int, count: int) -> bool:
        """Subtract *count* from the lookup count of *ino*. Return False if the count is smaller than that.

        An inode without a name goes when its count is zero.
        """
        inode = self._tree.inodes.get(ino)
        if inode is None or inode.lookups < count:
            return False
        inode.lookups -= count
        self._tree.discard_if_unused(ino)
        return True

    # --- facts

    @property
    def is_empty(self) -> bool:
        """Whether not even the root directory exists yet."""
        return not self._tree.inodes

    @property
    def files(self) -> int:
        """How many files of all kinds the scope holds, without the root. What is not stored does not count."""
        return len(self._tree.inodes) - self._unstored().files - (not self.is_empty)

    @property
    def used(self) -> int:
        """How many bytes of content the scope holds. What is not stored does not count."""
        return self._tree.content_bytes - self._unstored().content

    def _unstored(self) -> Usage:
        usages = [hook.unstored for hook in self._hooks]
        return Usage(sum(usage.content for usage in usages), sum(usage.files for usage in usages))

    @property
    def pending(self) -> int:
        """How many commits wait for the store."""
        return 0 if self._claim is None else self._claim.pending

    @property
    def store_label(self) -> str:
        """The store's URL as people may see it."""
        return self._store.label

    @property
    def last_error(self) -> tuple[int, str] | None:
        """When (ns) and how the store last failed a change."""
        return self._pipeline.last_error

    def room(self) -> Capacity:
        """Return the room in bytes: the scope's limit, or the store's room as last measured, less the growth since."""
        used = self.used
        total = self._capacity.total
        free = min(total, max(0, self._capacity.free - (used - self._used_then)))
        most = self.limits.max_bytes
        return Capacity(most, min(free, max(0, most - used))) if most else Capacity(total, free)

    async def measure_room(self) -> None:
        """Ask the store how much room it has, for :meth:`room`. Raises StoreError."""
        self._capacity = await self._store.capacity()
        self._used_then = self.used

    def measure_memory(self) -> None:
        """Measure what the daemon has resident, for its limit."""
        self._memory.sample(self._tree)

    def check_memory(self, more: int) -> None:
        """Refuse to use *more* bytes of memory for a request if the daemon may not grow so far. Errors: ENOSPC."""
        self._memory.check(self._tree, more)

    # --- changing names

    async def create(self, key: EntryKey, new: NewInode) -> Inode:
        """Make a new inode of any kind at *key* and return it. Errors: see :func:`plan_create`."""
        ino = self._tree.allocate()
        await self.change(lambda: (key.parent,), lambda now_ns: plan_create(self._tree, key, ino, new, now_ns))
        return self._tree.inodes[ino]

    async def link(self, ino: int, key: EntryKey) -> Inode:
        """Make *key* another name of inode *ino* and return it. Errors: see :func:`plan_link`."""
        await self.change(lambda: (key.parent, ino), lambda now_ns: plan_link(self._tree, ino, key, now_ns))
        return self._tree.inode(ino)

    async def unlink(self, key: EntryKey) -> Change:
        """Remove the name at *key*. Errors: see :func:`plan_unlink`."""
        return await self.change(lambda: self._touched(key), lambda now_ns: plan_unlink(self._tree, key, now_ns))

    async def rmdir(self, key: EntryKey) -> Change:
        """Remove the empty directory at *key*. Errors: see :func:`plan_rmdir`."""
        return await self.change(lambda: self._touched(key), lambda now_ns: plan_rmdir(self._tree, key, now_ns))

    async def rename(self, source: EntryKey, target: EntryKey, flags: int, uid: int = 0, gid: int = 0) -> Change:
        """Move *source* to *target*; *flags* as in :manpage:`renameat2(2)`. Errors: see :func:`plan_rename`.

        *uid* and *gid* own the whiteout that RENAME_WHITEOUT leaves.
        """
        whiteout = Whiteout(self._tree.allocate(), uid, gid) if flags & RENAME_WHITEOUT else None
        return await self.change(
            lambda: self._touched_by_rename(source, target),
            lambda now_ns: plan_rename(self._tree, source, target, flags, now_ns, whiteout),
        )

    def _touched_by_rename(self, source: EntryKey, target: EntryKey) -> tuple[int, ...]:
        """Return what a rename touches. A directory that moves to another directory touches the shape of the tree.

        Two such moves, each correct by itself, can close a circle together: they must not be planned side by side. The
        kernel prevents that while both are unanswered, but not while the first is in doubt.
        """
        inos = (*self._touched(source), *self._touched(target))
        children = [self._tree.child(*key) for key in (source, target)]
        moved = [child.ino for child in children if child is not None and child.directory is not None]
        below = (ino for top in moved for hook in self._hooks if hook.active for ino in hook.touched_below(top))
        shape = (_SHAPE,) if moved and source.parent != target.parent else ()
        return (*inos, *below, *shape)

    def _touched(self, key: EntryKey) -> tuple[int, ...]:
        """Return the directory and, if there is one, the inode that a change at *key* touches."""
        child = self._tree.child(*key)
        return (key.parent,) if child is None else (key.parent, child.ino)

    # --- changing one inode

    async def setattr(self, ino: int, new: NewAttributes) -> Inode:
        """Give *ino* new attributes, all in one change. Errors: see :func:`plan_setattr`."""
        await self.change(lambda: (ino,), lambda now_ns: plan_setattr(self._tree, ino, new, now_ns))
        return self._tree.inode(ino)

    async def write(self, ino: int, offset: int, data: bytes) -> None:
        """Write *data* at *offset*, all of it or nothing. Errors: see :func:`plan_write`."""
        await self._pipeline.change(lambda: (ino,), lambda now_ns: plan_write(self._tree, ino, offset, data, now_ns))

    async def setxattr(self, ino: int, name: bytes, value: bytes) -> None:
        """Set an extended attribute. Errors: see :func:`plan_setxattr`."""
        await self.change(lambda: (ino,), lambda now_ns: plan_setxattr(self._tree, ino, name, value, now_ns))

    async def removexattr(self, ino: int, name: bytes) -> None:
        """Remove an extended attribute. Errors: see :func:`plan_removexattr`."""
        await self.change(lambda: (ino,), lambda now_ns: plan_removexattr(self._tree, ino, name, now_ns))

    # --- truncation on open

    async def truncate_on_open(self, ino: int, is_member: IsMember | None = None) -> None:
        """Empty *ino* in memory, because it is opened with O_TRUNC. See :func:`plan_truncate`. Errors: also ENOSPC."""

        def plan(now_ns: int) -> Change:
            return plan_truncate(self._tree, ino, now_ns, is_member)

        if await self._pipeline.truncate(ino, plan):
            self._deferred.add(ino)

    def store_truncation_soon(self, ino: int) -> None:
        """Store the truncation of *ino* as soon as the store takes it, if it still waits."""
        if ino in self._deferred:
            self._background.insist(partial(self._store_truncation, ino), f"the truncation of inode {ino}")

    async def _store_truncation(self, ino: int) -> None:
        if ino in self._deferred:
            await self.change(lambda: (ino,), lambda _now_ns: self._deferred.plan(ino))

    # --- the scope

    async def change(self, touched: Touched, plan: Plan) -> Change:
        """Make the change that *plan* plans and return it; *touched* names the inodes. Raises FsError, StoreError."""
        return await self._pipeline.change(touched, plan)

    async def change_unstored(self, plan: Callable[[int], EffectsT]) -> EffectsT:
        """Make a change of memory that the store never gets. Raises FsError, InDoubt."""
        return await self._pipeline.change_unstored(plan)

    async def make_root(self, uid: int, gid: int) -> None:
        """Make the root directory of a new scope, owned by *uid* and *gid*."""

        def plan(now_ns: int) -> Change:
            root = Attributes(stat.S_IFDIR | 0o755, 2, uid, gid, 0, 0, now_ns, now_ns, now_ns)
            return Change((PutInode(ROOT, root),), grows=True)

        await self.change(lambda: (ROOT,), plan)

    async def sync(self, ino: int = ROOT) -> None:
        """Make *ino* as safe as fsync promises: store its truncation, then do the store's fsync. Raises StoreError."""
        if self._claim is None or self._is_retired:
            return
        await self._store_truncation(ino)
        try:
            await self._claim.sync()
        except StoreError as error:
            self._pipeline.note_error(error)
            raise

    async def drain(self) -> None:
        """Store every truncation that waits. Raises the last StoreError."""
        failed: StoreError | None = None
        for ino in self._deferred:
            try:
                await self._store_truncation(ino)
            except StoreError as error:
                failed = error
        if failed is not None:
            raise failed

    async def retire(self) -> None:
        """Make no further change (EROFS), because everything stored is about to go. Memory stays readable.

        It begins with an empty commit, so that an owner who has lost the scope is refused. A second call does nothing.
        Raises FsError (EROFS) if the scope was mounted for reading, StoreError.
        """
        if self._claim is None:
            raise FsError(errno.EROFS)
        if not self._is_retired:
            await self._claim.commit(NOTHING)
        self._is_retired = True
        self._pipeline.retire()
        self._deferred.clear()
