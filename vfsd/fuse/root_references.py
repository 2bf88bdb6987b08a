"""The layer that answers lookups at the root which mean a file of a skill (:mod:`vfsd.seeds.root_references`).

It takes a request before the handlers do, and passes on every request that concerns no virtual directory. What it
answers must not be cached: the kernel asks again each time, and a real name takes over at once. What is only answered
can be removed, which stores nothing; moving it is refused (EROFS). Making something in a virtual directory, or giving
it other attributes, makes it real first, under the same inode number. A program that makes such a name at the root
finds it free (:mod:`vfsd.fuse.caller`).
"""

import errno
import logging
import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import pyfuse3

from vfsd.errors import FsError
from vfsd.fuse.caller import makes
from vfsd.fuse.guard import Handler
from vfsd.fuse.handles import Handles, Listing
from vfsd.fuse.operations import Operations
from vfsd.fuse.replies import Replies
from vfsd.scope.volume import Volume
from vfsd.seeds.root_references import RootReferences, VirtualDirectory
from vfsd.tree.change import ROOT
from vfsd.tree.draft import check_name
from vfsd.tree.inode import FIRST_COOKIE, Inode
from vfsd.tree.plan_names import EntryKey, NewInode
from vfsd.tree.plan_subtree import NewEntry

_log = logging.getLogger("vfsd.fuse.trace.loose")
"""Shown together with the trace of requests, and only then."""

_FIRST_HANDLE = 1 << 62
"""Handles of virtual directories begin here, far from those of real ones."""


class RootReferenceLayer:
    """Answers what *references* finds, in front of the handlers *operations* for *volume*.

    *replies* builds what it says about inodes.
    """

    def __init__(self, references: RootReferences, volume: Volume, replies: Replies, operations: Operations) -> None:
        self._references = references
        self._volume = volume
        self._replies = replies
        self._operations = operations
        self._listings: Handles[Listing] = Handles(_FIRST_HANDLE)

    def around(self, name: str, handler: Handler) -> Handler:
        """See :class:`vfsd.fuse.guard.Layer`. A request that has a method here goes through it."""
        method: Callable[..., Awaitable[Any]] | None = getattr(self, f"on_{name}", None)
        return handler if method is None else partial(method, handler)

    # --- looking

    def on_lookup(self, handler: Handler, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> Awaitable[Any]:
        """Answer what a seeded skill has under *name* too, if nothing real has that name."""
        virtual = self._references.virtual(parent)
        if virtual is not None:
            return self._lookup_below(virtual, name)
        if parent == ROOT and name not in {b".", b".."}:
            return self._lookup_at_root(handler, name, ctx)
        return handler(parent, name, ctx)

    async def _lookup_at_root(self, handler: Handler, name: bytes, ctx: pyfuse3.RequestContext) -> Any:
        check_name(name)
        found = self._references.find((name,))
        if found is not None and await makes(ctx.pid, name):
            raise FsError(errno.ENOENT)
        found = self._references.find((name,))
        if found is None:
            if self._references.hides(name):  # the kernel must not remember this: the next seeding may change it
                raise FsError(errno.ENOENT)
            return await handler(ROOT, name, ctx)
        _log.debug("loose: /%s", name.decode(errors="backslashreplace"))
        return self._count(found)

    async def _lookup_below(self, virtual: VirtualDirectory, name: bytes) -> pyfuse3.EntryAttributes:
        return self._count(self._below(virtual, name))

    def _below(self, virtual: VirtualDirectory, name: bytes) -> Inode | VirtualDirectory:
        """Return what is answered in *virtual*. Errors: ENOENT, ESTALE."""
        self._references.attributes(virtual)
        if name == b".":
            return virtual
        if name == b"..":
            return self._references.node(self._references.parent(virtual))
        names = (*virtual.names, name)
        found = self._references.find(names)
        if found is None:
            raise FsError(errno.ENOENT)
        _log.debug("loose: /%s is inode %d", b"/".join(names).decode(errors="backslashreplace"), found.ino)
        return found

    def _count(self, found: Inode | VirtualDirectory) -> pyfuse3.EntryAttributes:
        """Return the reply that gives the kernel one more reference, and that it must not cache."""
        entry = self._show(found)
        found.lookups += 1
        return entry

    def _show(self, found: Inode | VirtualDirectory) -> pyfuse3.EntryAttributes:
        if isinstance(found, VirtualDirectory):
            entry = self._replies.show(Inode(found.ino, self._references.attributes(found)))
            entry.attr_timeout = 0.0
        else:
            entry = self._replies.show(found)
        entry.entry_timeout = 0.0
        return entry

    async def on_forget(self, handler: Handler, inode_list: Sequence[tuple[int, int]]) -> None:
        """Take back references to virtual directories, and pass the others on."""
        others = []
        for ino, count in inode_list:
            virtual = self._references.virtual(ino)
            if virtual is None:
                others.append((ino, count))
            else:
                self._references.forget(virtual, count)
        await handler(others)

    def on_getattr(self, handler: Handler, ino: int, ctx: pyfuse3.RequestContext) -> Awaitable[Any]:
        """Return the attributes of a virtual directory."""
        virtual = self._references.virtual(ino)
        return handler(ino, ctx) if virtual is None else self._getattr(virtual)

    async def _getattr(self, virtual: VirtualDirectory) -> pyfuse3.EntryAttributes:
        return self._show(virtual)

    async def on_opendir(self, handler: Handler, ino: int, ctx: pyfuse3.RequestContext) -> Any:
        """Open a virtual directory."""
        virtual = self._references.virtual(ino)
        if virtual is None:
            return await handler(ino, ctx)
        return pyfuse3.FileHandleT(self._listings.add(Listing(ino, self._references.directory(virtual))))

    async def on_readdir(self, handler: Handler, fh: int, start_id: int, token: pyfuse3.ReaddirToken) -> None:
        """List what was answered when a virtual directory was opened, without what is gone."""
        if fh not in self._listings:
            await handler(fh, start_id, token)
            return
        listing = self._listings[fh]
        if self._references.virtual(listing.ino) is None:
            return
        for name, ino, cookie in listing.after(start_id):
            try:
                found = self._references.node(ino)
                entry = self._show(found)
            except FsError:  # it is gone by now
                continue
            if not pyfuse3.readdir_reply(token, pyfuse3.FileNameT(name), entry, cookie):
                return
            if cookie >= FIRST_COOKIE:
                found.lookups += 1

    async def on_fsyncdir(self, handler: Handler, fh: int, datasync: bool) -> None:
        """Sync the listing's directory, virtual or real."""
        if fh in self._listings:
            await self._volume.sync(self._listings[fh].ino)
        else:
            await handler(fh, datasync)

    async def on_releasedir(self, handler: Handler, fh: int) -> None:
        """Close a virtual directory."""
        if fh in self._listings:
            del self._listings[fh]
        else:
            await handler(fh)

    # --- making something in a virtual directory: that and the directories are one change

    def on_mknod(  # noqa: PLR0913, PLR0917 (pyfuse3's signature)
        self, handler: Handler, parent: int, name: bytes, mode: int, rdev: int, ctx: pyfuse3.RequestContext
    ) -> Awaitable[Any]:
        """Make a file of any kind."""
        virtual = self._references.virtual(parent)
        if virtual is None:
            return handler(parent, name, mode, rdev, ctx)
        return self._make(virtual, name, NewInode(mode, ctx.uid, ctx.gid, rdev))

    def on_mkdir(
        self, handler: Handler, parent: int, name: bytes, mode: int, ctx: pyfuse3.RequestContext
    ) -> Awaitable[Any]:
        """Make a directory."""
        virtual = self._references.virtual(parent)
        if virtual is None:
            return handler(parent, name, mode, ctx)
        return self._make(virtual, name, NewInode(mode, ctx.uid, ctx.gid))

    def on_symlink(
        self, handler: Handler, parent: int, name: bytes, target: bytes, ctx: pyfuse3.RequestContext
    ) -> Awaitable[Any]:
        """Make a symbolic link."""
        virtual = self._references.virtual(parent)
        if virtual is None:
            return handler(parent, name, target, ctx)
        return self._make(virtual, name, NewInode(stat.S_IFLNK | 0o777, ctx.uid, ctx.gid, target=target))

    async def _make(self, virtual: VirtualDirectory, name: bytes, new: NewInode) -> pyfuse3.EntryAttributes:
        return self._replies.show_and_count(await self._create_in(virtual, name, new))

    def on_create(  # noqa: PLR0913, PLR0917 (pyfuse3's signature)
        self, handler: Handler, parent: int, name: bytes, mode: int, flags: int, ctx: pyfuse3.RequestContext
    ) -> Awaitable[Any]:
        """Make a regular file and open it."""
        virtual = self._references.virtual(parent)
        if virtual is None:
            return handler(parent, name, mode, flags, ctx)
        return self._create(virtual, name, flags, NewInode(stat.S_IFREG | mode, ctx.uid, ctx.gid))

    async def _create(
        self, virtual: VirtualDirectory, name: bytes, flags: int, new: NewInode
    ) -> tuple[pyfuse3.FileInfo, pyfuse3.EntryAttributes]:
        inode = await self._create_in(virtual, name, new)
        return self._operations.opened(inode.ino, flags & ~os.O_TRUNC), self._replies.show_and_count(inode)

    async def _create_in(self, virtual: VirtualDirectory, name: bytes, new: NewInode) -> Inode:
        ino = self._references.allocate()
        await self._make_real(virtual, NewInode(0, new.uid, new.gid), NewEntry(name, ino, new))
        return self._volume.inode(ino)

    async def _make_real(self, virtual: VirtualDirectory, owner: NewInode, *last: NewEntry) -> None:
        """Make *virtual* a directory of *owner*, and *last* in it."""
        await self._volume.change(
            lambda: self._references.touched(virtual),
            lambda now_ns: self._references.plan(virtual, last, owner, now_ns),
        )
        self._references.adopt()

    # --- what needs the directory itself: it becomes real first

    async def _ensure_real(self, ino: int, ctx: pyfuse3.RequestContext) -> None:
        virtual = self._references.virtual(ino)
        if virtual is not None:
            await self._make_real(virtual, NewInode(0, ctx.uid, ctx.gid))

    async def on_setattr(  # noqa: PLR0913, PLR0917 (pyfuse3's signature)
        self,
        handler: Handler,
        ino: int,
        attr: pyfuse3.EntryAttributes,
        fields: pyfuse3.SetattrFields,
        fh: int | None,
        ctx: pyfuse3.RequestContext,
    ) -> Any:
        """Change attributes. Programs that unpack a tree set them on its directories, which must then be real."""
        await self._ensure_real(ino, ctx)
        return await handler(ino, attr, fields, fh, ctx)

    async def on_link(
        self, handler: Handler, ino: int, new_parent: int, new_name: bytes, ctx: pyfuse3.RequestContext
    ) -> Any:
        """Give an inode a name in a virtual directory."""
        await self._ensure_real(new_parent, ctx)
        return await handler(ino, new_parent, new_name, ctx)

    async def on_rename(  # noqa: PLR0913, PLR0917 (pyfuse3's signature)
        self,
        handler: Handler,
        old_parent: int,
        old_name: bytes,
        new_parent: int,
        new_name: bytes,
        flags: int,
        ctx: pyfuse3.RequestContext,
    ) -> None:
        """Move a real name. Errors: EROFS for what is only answered."""
        self._references.adopt()
        if self._references.is_answered(EntryKey(old_parent, old_name)):
            raise FsError(errno.EROFS)
        await self._ensure_real(new_parent, ctx)
        await handler(old_parent, old_name, new_parent, new_name, flags, ctx)

    async def on_setxattr(
        self, handler: Handler, ino: int, name: bytes, value: bytes, ctx: pyfuse3.RequestContext
    ) -> None:
        """Set an extended attribute."""
        if self._operations.has_xattrs:
            await self._ensure_real(ino, ctx)
        await handler(ino, name, value, ctx)

    # --- removing: what is only answered is not answered any more

    async def on_unlink(self, handler: Handler, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        """Remove a name."""
        if not self._remove(EntryKey(parent, name), directory=False):
            await handler(parent, name, ctx)

    async def on_rmdir(self, handler: Handler, parent: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        """Remove an empty directory."""
        if not self._remove(EntryKey(parent, name), directory=True):
            await handler(parent, name, ctx)

    def _remove(self, key: EntryKey, *, directory: bool) -> bool:
        """Remove *key* if it is only answered. Return whether it was, or had been."""
        self._references.adopt()
        names = self._references.names(key)
        if names is None or (key.parent == ROOT and self._references.find(names) is None):
            return False
        self._references.remove(names, directory=directory)
        return True

    # --- what a virtual directory does not have

    async def on_getxattr(self, handler: Handler, ino: int, name: bytes, ctx: pyfuse3.RequestContext) -> Any:
        """Return an extended attribute. A virtual directory has none."""
        if self._operations.has_xattrs and self._references.virtual(ino) is not None:
            raise FsError(errno.ENODATA)
        return await handler(ino, name, ctx)

    async def on_listxattr(self, handler: Handler, ino: int, ctx: pyfuse3.RequestContext) -> Any:
        """Return the names of the extended attributes."""
        if self._operations.has_xattrs and self._references.virtual(ino) is not None:
            return []
        return await handler(ino, ctx)

    async def on_removexattr(self, handler: Handler, ino: int, name: bytes, ctx: pyfuse3.RequestContext) -> None:
        """Remove an extended attribute."""
        if self._operations.has_xattrs and self._references.virtual(ino) is not None:
            raise FsError(errno.ENODATA)
        await handler(ino, name, ctx)
