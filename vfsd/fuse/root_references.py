"""The handlers where they meet phantoms: directories that are answered at the root and are not there.

Nothing that is answered so may be cached: the kernel asks again each time, and a real name takes over at once. Removing
or moving what is only answered is refused (EROFS); making something in it, or giving it other attributes, makes it real
first, under the same number.
"""

import errno
import logging
from collections.abc import Sequence

import pyfuse3

from vfsd.errors import FsError
from vfsd.fuse.handles import Listing
from vfsd.fuse.operations import Operations, XattrOperations
from vfsd.fuse.replies import Replies
from vfsd.scope.volume import Volume
from vfsd.seeds.root_references import RootReferences, VirtualDirectory, is_answered
from vfsd.tree.change import ROOT
from vfsd.tree.draft import check_name
from vfsd.tree.inode import FIRST_COOKIE, Inode
from vfsd.tree.plan_names import EntryKey, NewInode
from vfsd.tree.plan_subtree import NewEntry

_log = logging.getLogger("vfsd.fuse.trace.loose")
"""Heard with the trace of requests, and only then."""


class LooseOperations(Operations):
    """As :class:`Operations`, with lookups that forgive."""

    def __init__(self, volume: Volume, view: Replies) -> None:
        super().__init__(volume, view)
        self._loose = RootReferences(volume.tree, volume.changes.seeds)
        self._answered: set[int] = set()
        """Handles of open phantoms."""

    # --- looking

    async def lookup(
        self, parent_inode: pyfuse3.InodeT, name: pyfuse3.FileNameT, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        """Answer also what a seeded skill has under the name, where nothing else is."""
        phantom = self._loose.phantom(parent_inode)
        if phantom is not None:
            return self._counted_loosely(self._below(phantom, name))
        if parent_inode == ROOT and name not in {b".", b".."}:
            check_name(name)
            found = self._loose.find((name,))
            if found is not None:
                _log.debug("loose: /%s", name.decode(errors="backslashreplace"))
                return self._counted_loosely(found)
        return await super().lookup(parent_inode, name, ctx)

    def _below(self, phantom: VirtualDirectory, name: bytes) -> Inode | VirtualDirectory:
        """Return what is answered in *phantom*. Errors: ENOENT, ESTALE."""
        self._loose.attributes(phantom)
        if name == b".":
            return phantom
        if name == b"..":
            return self._node(self._loose.parent(phantom))
        names = (*phantom.names, name)
        found = self._loose.find(names)
        if found is None:
            raise FsError(errno.ENOENT)
        _log.debug("loose: /%s is inode %d", b"/".join(names).decode(errors="backslashreplace"), found.ino)
        return found

    def _node(self, ino: int) -> Inode | VirtualDirectory:
        return self._loose.phantom(ino) or self._volume.tree.inode(ino)

    def _counted_loosely(self, found: Inode | VirtualDirectory) -> pyfuse3.EntryAttributes:
        """Return the reply that gives the kernel one more reference, and that it must not keep."""
        entry = self._passing(found)
        found.lookups += 1
        return entry

    def _passing(self, found: Inode | VirtualDirectory) -> pyfuse3.EntryAttributes:
        if isinstance(found, VirtualDirectory):
            entry = self._view.entry(Inode(found.ino, self._loose.attributes(found)))
            entry.attr_timeout = 0.0
        else:
            entry = self._view.entry(found)
        entry.entry_timeout = 0.0
        return entry

    async def forget(self, inode_list: Sequence[tuple[pyfuse3.InodeT, int]]) -> None:
        """Take back references, those to phantoms too."""
        others = []
        for ino, count in inode_list:
            phantom = self._loose.phantom(ino)
            if phantom is None:
                others.append((ino, count))
            else:
                self._loose.forget(phantom, count)
        await super().forget(others)

    async def getattr(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> pyfuse3.EntryAttributes:
        """Answer attributes."""
        phantom = self._loose.phantom(inode)
        return await super().getattr(inode, ctx) if phantom is None else self._passing(phantom)

    async def opendir(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> pyfuse3.FileHandleT:
        """Open a directory."""
        phantom = self._loose.phantom(inode)
        if phantom is None:
            return await super().opendir(inode, ctx)
        fh = self._listings.add(Listing(inode, self._loose.directory(phantom)))
        self._answered.add(fh)
        return pyfuse3.FileHandleT(fh)

    async def readdir(self, fh: pyfuse3.FileHandleT, start_id: int, token: pyfuse3.ReaddirToken) -> None:
        """List what was answered when the phantom was opened, but for what is gone."""
        if fh not in self._answered:
            await super().readdir(fh, start_id, token)
            return
        listing = self._listings.get(fh)
        if self._loose.phantom(listing.ino) is None:
            return
        for name, ino, cookie in listing.after(start_id):
            try:
                found = self._node(ino)
                entry = self._passing(found)
            except FsError:  # gone meanwhile: it is left out
                continue
            if not pyfuse3.readdir_reply(token, pyfuse3.FileNameT(name), entry, cookie):
                return
            if cookie >= FIRST_COOKIE:
                found.lookups += 1

    async def releasedir(self, fh: pyfuse3.FileHandleT) -> None:
        """Close a directory."""
        self._answered.discard(fh)
        await super().releasedir(fh)

    # --- changing

    async def setattr(
        self,
        inode: pyfuse3.InodeT,
        attr: pyfuse3.EntryAttributes,
        fields: pyfuse3.SetattrFields,
        fh: pyfuse3.FileHandleT | None,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Change attributes. Who unpacks a tree gives its directories some: they are to be there then, as any other."""
        await self._make_room(inode, ctx)
        return await super().setattr(inode, attr, fields, fh, ctx)

    async def _create(
        self, key: EntryKey, mode: int, ctx: pyfuse3.RequestContext, *, rdev: int = 0, target: bytes = b""
    ) -> Inode:
        phantom = self._loose.phantom(key.parent)
        if phantom is None:
            return await super()._create(key, mode, ctx, rdev=rdev, target=target)
        new = NewInode(mode, ctx.uid, ctx.gid, rdev, target)
        ino = self._volume.tree.allocate()
        await self._make_real(phantom, (NewEntry(key.name, ino, new),), ctx)
        return self._volume.tree.inode(ino)

    async def _make_real(
        self, phantom: VirtualDirectory, last: tuple[NewEntry, ...], ctx: pyfuse3.RequestContext
    ) -> None:
        owner = NewInode(0, ctx.uid, ctx.gid)
        await self._volume.changes.make(
            lambda: self._loose.touched(phantom), lambda now_ns: self._loose.plan(phantom, last, owner, now_ns)
        )
        self._loose.adopt()

    async def _make_room(self, parent: int, ctx: pyfuse3.RequestContext) -> None:
        """Make directory *parent* real, if it is a phantom."""
        phantom = self._loose.phantom(parent)
        if phantom is not None:
            await self._make_real(phantom, (), ctx)

    async def link(
        self,
        inode: pyfuse3.InodeT,
        new_parent_inode: pyfuse3.InodeT,
        new_name: pyfuse3.FileNameT,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Give an inode another name."""
        await self._make_room(new_parent_inode, ctx)
        return await super().link(inode, new_parent_inode, new_name, ctx)

    async def unlink(self, parent_inode: pyfuse3.InodeT, name: pyfuse3.FileNameT, ctx: pyfuse3.RequestContext) -> None:
        """Remove a name that is there."""
        self._refuse(parent_inode)
        await super().unlink(parent_inode, name, ctx)

    async def rmdir(self, parent_inode: pyfuse3.InodeT, name: pyfuse3.FileNameT, ctx: pyfuse3.RequestContext) -> None:
        """Remove an empty directory that is there."""
        self._refuse(parent_inode, name)
        await super().rmdir(parent_inode, name, ctx)

    async def rename(  # noqa: PLR0913, PLR0917 (pyfuse3's signature)
        self,
        parent_inode_old: pyfuse3.InodeT,
        name_old: pyfuse3.FileNameT,
        parent_inode_new: pyfuse3.InodeT,
        name_new: pyfuse3.FileNameT,
        flags: pyfuse3.FlagT,
        ctx: pyfuse3.RequestContext,
    ) -> None:
        """Move a name that is there."""
        self._refuse(parent_inode_old, name_old)
        await self._make_room(parent_inode_new, ctx)
        await super().rename(parent_inode_old, name_old, parent_inode_new, name_new, flags, ctx)

    def _refuse(self, ino: int, name: bytes = b"") -> None:
        """Refuse to take a name from a phantom, or *name* from the root if that is one. Errors: EROFS."""
        self._loose.adopt()
        if self._loose.phantom(ino) is not None or (name and is_answered(self._loose, EntryKey(ino, name))):
            raise FsError(errno.EROFS)


class LooseXattrOperations(LooseOperations, XattrOperations):
    """Both. A phantom has no extended attributes, until it is made real for one."""

    async def getxattr(self, inode: pyfuse3.InodeT, name: pyfuse3.XAttrNameT, ctx: pyfuse3.RequestContext) -> bytes:
        """Answer one attribute's value."""
        if self._loose.phantom(inode) is not None:
            raise FsError(errno.ENODATA)
        return await super().getxattr(inode, name, ctx)

    async def listxattr(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> Sequence[pyfuse3.XAttrNameT]:
        """Answer the names of all."""
        return [] if self._loose.phantom(inode) is not None else await super().listxattr(inode, ctx)

    async def setxattr(
        self, inode: pyfuse3.InodeT, name: pyfuse3.XAttrNameT, value: bytes, ctx: pyfuse3.RequestContext
    ) -> None:
        """Set one."""
        await self._make_room(inode, ctx)
        await super().setxattr(inode, name, value, ctx)

    async def removexattr(self, inode: pyfuse3.InodeT, name: pyfuse3.XAttrNameT, ctx: pyfuse3.RequestContext) -> None:
        """Remove one."""
        if self._loose.phantom(inode) is not None:
            raise FsError(errno.ENODATA)
        await super().removexattr(inode, name, ctx)
