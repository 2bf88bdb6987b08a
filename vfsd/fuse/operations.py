"""The handlers: each takes one kernel request to the volume and makes the reply. No rules, no state but what is open.

Lookup counts change right beside building the reply that the kernel counts, never across an ``await``
(pyfuse3 documentation, "Lookup Counts"). ``flush`` is left to answer ENOSYS: nothing can be pending, and the kernel
then stops asking. So are extended attributes, unless asked for: else it would ask before every write.
"""

import errno
import logging
import os
import stat
from collections.abc import Sequence

import pyfuse3

from vfsd.errors import FsError
from vfsd.fuse.handles import Handles, Listing, OpenFile
from vfsd.fuse.replies import Replies
from vfsd.scope.volume import Volume
from vfsd.tree.draft import NAME_MAX
from vfsd.tree.inode import FIRST_COOKIE, Inode
from vfsd.tree.plan_attributes import NewAttributes
from vfsd.tree.plan_names import EntryKey, NewInode

_log = logging.getLogger(__name__)

_BLOCK = 4096
_BYTES_PER_FILE = 1024
"""What a small file takes in a store, roughly: turns free bytes into free inodes for ``df -i``."""


class Operations(pyfuse3.Operations):
    """Answers the kernel's requests for one mounted *volume*, showing inodes through *view*."""

    supports_dot_lookup = True
    enable_writeback_cache = False
    enable_acl = False

    def __init__(self, volume: Volume, view: Replies) -> None:
        super().__init__()
        self._volume = volume
        self._view = view
        self._files: Handles[OpenFile] = Handles()
        self._listings: Handles[Listing] = Handles()

    # --- inodes

    async def lookup(
        self, parent_inode: pyfuse3.InodeT, name: pyfuse3.FileNameT, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        """Answer what *name* is, or that it is not: either may be cached."""
        inode = self._volume.lookup(EntryKey(parent_inode, name))
        return self._view.absent if inode is None else self._counted(inode)

    def _counted(self, inode: Inode) -> pyfuse3.EntryAttributes:
        """Return the reply that gives the kernel one more reference to *inode*."""
        entry = self._view.entry(inode)
        inode.lookups += 1
        return entry

    async def forget(self, inode_list: Sequence[tuple[pyfuse3.InodeT, int]]) -> None:
        """Take back references; an inode without names goes with the last."""
        for ino, count in inode_list:
            inode = self._volume.tree.inodes.get(ino)
            if inode is None or inode.lookups < count:
                _log.error("the kernel forgets %d references to inode %d, which has not as many", count, ino)
                continue
            inode.lookups -= count
            self._volume.tree.discard_if_unused(ino)

    async def getattr(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> pyfuse3.EntryAttributes:
        """Answer attributes."""
        return self._view.entry(self._volume.tree.inode(inode))

    async def setattr(
        self,
        inode: pyfuse3.InodeT,
        attr: pyfuse3.EntryAttributes,
        fields: pyfuse3.SetattrFields,
        fh: pyfuse3.FileHandleT | None,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Change attributes, size included."""
        new = NewAttributes(
            mode=attr.st_mode if fields.update_mode else None,
            uid=attr.st_uid if fields.update_uid else None,
            gid=attr.st_gid if fields.update_gid else None,
            size=attr.st_size if fields.update_size else None,
            atime_ns=attr.st_atime_ns if fields.update_atime else None,
            mtime_ns=attr.st_mtime_ns if fields.update_mtime else None,
        )
        return self._view.entry(await self._volume.setattr(inode, new))

    async def readlink(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> pyfuse3.FileNameT:
        """Answer where a symbolic link leads."""
        return pyfuse3.FileNameT(self._volume.tree.inode(inode).attributes.target)

    # --- names

    async def mknod(
        self,
        parent_inode: pyfuse3.InodeT,
        name: pyfuse3.FileNameT,
        mode: pyfuse3.ModeT,
        rdev: int,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Make a regular file, FIFO, socket or device node."""
        return self._counted(await self._create(EntryKey(parent_inode, name), mode, ctx, rdev=rdev))

    async def mkdir(
        self,
        parent_inode: pyfuse3.InodeT,
        name: pyfuse3.FileNameT,
        mode: pyfuse3.ModeT,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Make a directory."""
        return self._counted(await self._create(EntryKey(parent_inode, name), mode, ctx))

    async def symlink(
        self,
        parent_inode: pyfuse3.InodeT,
        name: pyfuse3.FileNameT,
        target: pyfuse3.FileNameT,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Make a symbolic link."""
        return self._counted(await self._create(EntryKey(parent_inode, name), stat.S_IFLNK | 0o777, ctx, target=target))

    async def _create(
        self, key: EntryKey, mode: int, ctx: pyfuse3.RequestContext, *, rdev: int = 0, target: bytes = b""
    ) -> Inode:
        return await self._volume.create(key, NewInode(mode, ctx.uid, ctx.gid, rdev, target))

    async def create(
        self,
        parent_inode: pyfuse3.InodeT,
        name: pyfuse3.FileNameT,
        mode: pyfuse3.ModeT,
        flags: pyfuse3.FlagT,
        ctx: pyfuse3.RequestContext,
    ) -> tuple[pyfuse3.FileInfo, pyfuse3.EntryAttributes]:
        """Make a regular file and open it."""
        inode = await self._create(EntryKey(parent_inode, name), stat.S_IFREG | mode, ctx)
        return self._opened(inode.ino, flags & ~os.O_TRUNC), self._counted(inode)

    async def link(
        self,
        inode: pyfuse3.InodeT,
        new_parent_inode: pyfuse3.InodeT,
        new_name: pyfuse3.FileNameT,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Give an inode another name."""
        return self._counted(await self._volume.link(inode, EntryKey(new_parent_inode, new_name)))

    async def unlink(self, parent_inode: pyfuse3.InodeT, name: pyfuse3.FileNameT, ctx: pyfuse3.RequestContext) -> None:
        """Remove a name."""
        await self._volume.unlink(EntryKey(parent_inode, name))

    async def rmdir(self, parent_inode: pyfuse3.InodeT, name: pyfuse3.FileNameT, ctx: pyfuse3.RequestContext) -> None:
        """Remove an empty directory."""
        await self._volume.rmdir(EntryKey(parent_inode, name))

    async def rename(  # noqa: PLR0913, PLR0917 (pyfuse3's signature)
        self,
        parent_inode_old: pyfuse3.InodeT,
        name_old: pyfuse3.FileNameT,
        parent_inode_new: pyfuse3.InodeT,
        name_new: pyfuse3.FileNameT,
        flags: pyfuse3.FlagT,
        ctx: pyfuse3.RequestContext,
    ) -> None:
        """Move a name, replacing or exchanging what is at the target."""
        source, target = EntryKey(parent_inode_old, name_old), EntryKey(parent_inode_new, name_new)
        await self._volume.rename(source, target, flags)

    # --- files

    async def open(self, inode: pyfuse3.InodeT, flags: pyfuse3.FlagT, ctx: pyfuse3.RequestContext) -> pyfuse3.FileInfo:
        """Open a file; O_TRUNC arrives here, since libfuse asks the kernel for atomic truncation."""
        if flags & os.O_TRUNC:
            await self._volume.changes.truncate_on_open(inode)
        return self._opened(inode, flags)

    def _opened(self, ino: int, flags: int) -> pyfuse3.FileInfo:
        """Return the reply to an open: cached pages stay good, for nobody else writes."""
        file = OpenFile(ino, truncated=bool(flags & os.O_TRUNC), direct=bool(flags & os.O_DIRECT))
        self._view.opened(file)
        return pyfuse3.FileInfo(fh=pyfuse3.FileHandleT(self._files.add(file)), keep_cache=True)

    async def read(self, fh: pyfuse3.FileHandleT, off: int, size: int) -> bytes:
        """Read from memory."""
        return self._volume.read(self._files.get(fh).ino, off, size)

    async def write(self, fh: pyfuse3.FileHandleT, off: int, buf: bytes) -> int:
        """Write; all of *buf* is stored when this returns."""
        await self._volume.write(self._files.get(fh).ino, off, buf)
        return len(buf)

    async def fsync(self, fh: pyfuse3.FileHandleT, datasync: bool) -> None:
        """Ask of the store what it can do beyond a commit."""
        await self._volume.changes.sync(self._files.get(fh).ino)

    async def release(self, fh: pyfuse3.FileHandleT) -> None:
        """Close a file; if opening emptied it and nothing was written, that is stored now."""
        file = self._files.get(fh)
        self._files.close(fh)
        self._view.closed(file)
        if file.truncated and file.ino in self._volume.changes.behind:
            self._volume.changes.behind.catch_up_soon(file.ino)

    # --- directories

    async def opendir(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> pyfuse3.FileHandleT:
        """Open a directory."""
        listing = Listing(inode, self._volume.tree.directory(inode))
        return pyfuse3.FileHandleT(self._listings.add(listing))

    async def readdir(self, fh: pyfuse3.FileHandleT, start_id: int, token: pyfuse3.ReaddirToken) -> None:
        """List entries after *start_id*; each one that fits gives the kernel a reference, but for the two dots."""
        inodes, shown, reply = self._volume.tree.inodes, self._view.entry, pyfuse3.readdir_reply
        for name, ino, cookie in self._listings.get(fh).after(start_id):
            inode = inodes.get(ino)
            if inode is None:  # the parent of a directory that has been removed
                continue
            if not reply(token, name, shown(inode), cookie):
                return
            if cookie >= FIRST_COOKIE:
                inode.lookups += 1

    async def fsyncdir(self, fh: pyfuse3.FileHandleT, datasync: bool) -> None:
        """As :meth:`fsync`."""
        await self._volume.changes.sync(self._listings.get(fh).ino)

    async def releasedir(self, fh: pyfuse3.FileHandleT) -> None:
        """Close a directory."""
        self._listings.close(fh)

    # --- the file system

    async def statfs(self, ctx: pyfuse3.RequestContext) -> pyfuse3.StatvfsData:
        """Answer how much room there is: the store's, as last asked for."""
        room = self._volume.room()
        files = self._volume.files
        answer = pyfuse3.StatvfsData()
        answer.f_bsize = answer.f_frsize = _BLOCK
        answer.f_blocks = room.total // _BLOCK
        answer.f_bfree = answer.f_bavail = room.free // _BLOCK
        most = self._volume.changes.limits.max_files
        answer.f_ffree = answer.f_favail = max(0, most - files) if most else room.free // _BYTES_PER_FILE
        answer.f_files = most or files + answer.f_ffree
        answer.f_namemax = NAME_MAX
        return answer


class XattrOperations(Operations):
    """As :class:`Operations`, with extended attributes. ACLs are refused: stored, they would enforce nothing."""

    async def getxattr(self, inode: pyfuse3.InodeT, name: pyfuse3.XAttrNameT, ctx: pyfuse3.RequestContext) -> bytes:
        """Answer one attribute's value."""
        _check_xattr(name)
        return self._volume.xattr(inode, name)

    async def listxattr(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> Sequence[pyfuse3.XAttrNameT]:
        """Answer the names of all; of those in ``trusted.`` only the superuser may know (:manpage:`xattr(7)`)."""
        names = (name for name, _ in self._volume.tree.inode(inode).attributes.xattrs)
        return [pyfuse3.XAttrNameT(name) for name in names if ctx.uid == 0 or not name.startswith(b"trusted.")]

    async def setxattr(
        self, inode: pyfuse3.InodeT, name: pyfuse3.XAttrNameT, value: bytes, ctx: pyfuse3.RequestContext
    ) -> None:
        """Set one."""
        _check_xattr(name)
        await self._volume.setxattr(inode, name, value)

    async def removexattr(self, inode: pyfuse3.InodeT, name: pyfuse3.XAttrNameT, ctx: pyfuse3.RequestContext) -> None:
        """Remove one."""
        _check_xattr(name)
        await self._volume.removexattr(inode, name)


def _check_xattr(name: bytes) -> None:
    if name.startswith(b"system."):
        raise FsError(errno.EOPNOTSUPP)
