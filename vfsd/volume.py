"""What a mounted scope can do: every mutation is planned, committed and applied here, and nowhere else.

A reader never awaits: lookups, attributes, listings and content come from memory. A mutation takes its turn, is
planned against memory (pure, may refuse), made durable by the store, and only then applied, so that no reader sees
what could still be lost and a failure leaves memory and store as they were. It knows neither FUSE nor Redis.
"""

import errno
import logging
import stat
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio

from vfsd import clock
from vfsd.errors import FsError, InDoubt, StoreError
from vfsd.store.base import Capacity, Claim, Store
from vfsd.tree import content
from vfsd.tree.attributes import NewAttributes, plan_removexattr, plan_setattr, plan_setxattr
from vfsd.tree.change import ROOT, Attributes, Change, PutInode
from vfsd.tree.data import plan_write
from vfsd.tree.draft import check_name
from vfsd.tree.inode import Inode
from vfsd.tree.names import NewInode, Place, plan_create, plan_link, plan_rename, plan_rmdir, plan_unlink
from vfsd.tree.tree import Tree
from vfsd.turns import Turns

_log = logging.getLogger(__name__)

Plan: TypeAlias = Callable[[int], Change]
"""Plans a change for the time it is given (ns)."""

OnSettled: TypeAlias = Callable[[Change], Awaitable[None]]
"""Told of a change that turned out to be stored after its caller was told that it failed."""


class Volume:
    """A scope in memory and the store behind it. Without *claim* it cannot be written (EROFS).

    *nursery* carries on with changes in doubt; *on_settled* hears of those that were stored after all.
    """

    def __init__(self, tree: Tree, store: Store, claim: Claim | None, nursery: trio.Nursery) -> None:
        self.tree = tree
        self.store = store
        self.last_error: tuple[int, str] | None = None
        """When (ns) the store last failed, and how."""
        self.on_settled: OnSettled = _nobody_to_tell
        self._capacity = Capacity(0, 0)
        self._bytes_then = 0
        self._claim = claim
        self._nursery = nursery
        self._turns = Turns()

    # --- reading: never awaits

    def lookup(self, place: Place) -> Inode | None:
        """Return what is at *place*, or None. Errors: ENAMETOOLONG, ENOTDIR, ESTALE."""
        check_name(place.name)
        return self.tree.child(*place)

    def read(self, ino: int, offset: int, length: int) -> bytes:
        """Return at most *length* bytes of a file from *offset*. Errors: ESTALE."""
        inode = self.tree.inode(ino)
        return content.read(inode.chunks, inode.attributes.size, offset, length)

    def xattr(self, ino: int, name: bytes) -> bytes:
        """Return the value of an extended attribute. Errors: ENODATA, ESTALE."""
        for key, value in self.tree.inode(ino).attributes.xattrs:
            if key == name:
                return value
        raise FsError(errno.ENODATA)

    def room(self) -> Capacity:
        """Return the store's room in bytes: as last measured, less what the files have grown by since."""
        grown = self.tree.content_bytes - self._bytes_then
        return Capacity(self._capacity.total, min(self._capacity.total, max(0, self._capacity.free - grown)))

    async def measure_room(self) -> None:
        """Ask the store how much room it has, for :meth:`room`. Raises StoreError."""
        self._capacity = await self.store.capacity()
        self._bytes_then = self.tree.content_bytes

    # --- changing names

    async def create(self, place: Place, new: NewInode) -> Inode:
        """Make a new inode of any kind at *place* and return it. Errors: see :func:`plan_create`."""
        ino = self.tree.allocate()
        await self._change(lambda: (place.parent,), lambda now_ns: plan_create(self.tree, place, ino, new, now_ns))
        return self.tree.inodes[ino]

    async def link(self, ino: int, place: Place) -> Inode:
        """Make *place* another name of inode *ino* and return it. Errors: see :func:`plan_link`."""
        await self._change(lambda: (place.parent, ino), lambda now_ns: plan_link(self.tree, ino, place, now_ns))
        return self.tree.inode(ino)

    async def unlink(self, place: Place) -> None:
        """Remove the name at *place*. Errors: see :func:`plan_unlink`."""
        await self._change(lambda: self._touched(place), lambda now_ns: plan_unlink(self.tree, place, now_ns))

    async def rmdir(self, place: Place) -> None:
        """Remove the empty directory at *place*. Errors: see :func:`plan_rmdir`."""
        await self._change(lambda: self._touched(place), lambda now_ns: plan_rmdir(self.tree, place, now_ns))

    async def rename(self, source: Place, target: Place, flags: int) -> None:
        """Move *source* to *target*; *flags* as in :manpage:`renameat2(2)`. Errors: see :func:`plan_rename`."""
        await self._change(
            lambda: (*self._touched(source), *self._touched(target)),
            lambda now_ns: plan_rename(self.tree, source, target, flags, now_ns),
        )

    def _touched(self, place: Place) -> tuple[int, ...]:
        """Return the directory and, if there is one, the inode that a change at *place* touches."""
        child = self.tree.child(*place)
        return (place.parent,) if child is None else (place.parent, child.ino)

    # --- changing one inode

    async def setattr(self, ino: int, new: NewAttributes) -> Inode:
        """Give *ino* new attributes, all in one change. Errors: see :func:`plan_setattr`."""
        await self._change(lambda: (ino,), lambda now_ns: plan_setattr(self.tree, ino, new, now_ns))
        return self.tree.inode(ino)

    async def write(self, ino: int, offset: int, data: bytes) -> None:
        """Write *data* at *offset*, all of it or nothing. Errors: see :func:`plan_write`."""
        await self._change(lambda: (ino,), lambda now_ns: plan_write(self.tree, ino, offset, data, now_ns))

    async def setxattr(self, ino: int, name: bytes, value: bytes) -> None:
        """Set an extended attribute. Errors: see :func:`plan_setxattr`."""
        await self._change(lambda: (ino,), lambda now_ns: plan_setxattr(self.tree, ino, name, value, now_ns))

    async def removexattr(self, ino: int, name: bytes) -> None:
        """Remove an extended attribute. Errors: see :func:`plan_removexattr`."""
        await self._change(lambda: (ino,), lambda now_ns: plan_removexattr(self.tree, ino, name, now_ns))

    async def sync(self) -> None:
        """Do what fsync promises beyond what every change already has. Raises StoreError."""
        if self._claim is not None:
            await self._noting_errors(self.store.sync)

    async def found(self, uid: int, gid: int) -> None:
        """Make the root directory of a new scope, owned by *uid* and *gid*."""
        now_ns = clock.now()
        root = Attributes(stat.S_IFDIR | 0o755, 2, uid, gid, 0, 0, now_ns, now_ns, now_ns)
        await self._change(lambda: (ROOT,), lambda _: Change((PutInode(ROOT, root),), grows=True))

    # --- plan, commit, apply

    async def _change(self, touched: Callable[[], tuple[int, ...]], plan: Plan) -> None:
        """Take the turn on what is *touched*, *plan*, commit, apply."""
        self._check_writable()
        inos = await self._take_turn(touched)
        try:
            change = plan(clock.now())
            await self._commit(change, inos)
            self.tree.apply(change)
        except InDoubt as doubt:
            self._turns.leave_in_doubt(inos, doubt)
            self._nursery.start_soon(self._settle, doubt, change, inos)
            raise
        except BaseException:
            self._turns.give_back(inos)
            raise
        self._turns.give_back(inos)

    async def _take_turn(self, touched: Callable[[], tuple[int, ...]]) -> tuple[int, ...]:
        """Take the turn on what is *touched*; look again after a wait, for a name may mean another inode by then."""
        while True:
            inos = touched()
            if not await self._turns.take(inos) or set(touched()) == set(inos):
                return inos
            self._turns.give_back(inos)

    async def _commit(self, change: Change, inos: tuple[int, ...]) -> None:
        claim = self._claim
        if change.ops and claim is not None and not self._is_forgotten(inos):
            await self._noting_errors(lambda: self.store.commit(claim, change))

    def _is_forgotten(self, inos: tuple[int, ...]) -> bool:
        """Whether a change concerns just one inode, and that has lost its last name: it lives in memory only."""
        only = self.tree.inodes.get(inos[0])
        return len(inos) == 1 and only is not None and only.is_orphan

    async def _settle(self, doubt: InDoubt, change: Change, inos: tuple[int, ...]) -> None:
        """Keep the turn on *inos* until it is known whether *change* was stored, and then let memory agree."""
        try:
            stored = await doubt.settled()
            if stored:
                self.tree.apply(change)
        finally:
            self._turns.give_back(inos)
        if stored:
            _log.warning("a change that was answered with an error turned out to be stored: now it is visible")
            await self.on_settled(change)

    async def _noting_errors(self, ask: Callable[[], Awaitable[None]]) -> None:
        try:
            await ask()
        except StoreError as error:
            self.last_error = (clock.now(), str(error))
            raise

    def _check_writable(self) -> None:
        if self._claim is None:
            raise FsError(errno.EROFS)


async def _nobody_to_tell(_change: Change) -> None:
    """Stand in until a mount wants to hear of settled changes."""
