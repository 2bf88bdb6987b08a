"""The handlers: each takes one request of the kernel to the volume and returns the reply.

They hold no rules of the file system, and no state except what is open. By default the layer in
:mod:`vfsd.fuse.root_references` sees requests first. ``flush`` stays unimplemented and answers
ENOSYS: nothing can be pending, and the kernel then stops asking. Extended attributes answer ENOSYS too unless they are
asked for: otherwise the kernel asks for one before every write.
"""

import errno
import logging
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import pyfuse3

from vfsd import clock
from vfsd.errors import FsError
from vfsd.fuse.handles import Handles, Listing, OpenFile
from vfsd.fuse.kernel_cache import FuseKernelCache
from vfsd.fuse.replies import Replies
from vfsd.scope.volume import Volume
from vfsd.tree.draft import NAME_MAX
from vfsd.tree.inode import FIRST_COOKIE, Inode
from vfsd.tree.plan_attributes import NOW, NewAttributes, NewTime
from vfsd.tree.plan_names import EntryKey, NewInode

_log = logging.getLogger(__name__)

_SUPERUSER = 0
_XATTR_NAMESPACES = (b"user.", b"trusted.", b"security.")
_BLOCK = 4096
_BYTES_PER_FILE = 1024
"""Roughly what a small file takes in a store. It turns free bytes into free inodes for ``df -i``."""


class Operations(pyfuse3.Operations):
    """Answers the kernel's requests for one mounted *volume*. *replies* builds what it says about inodes.

    *kernel* drops what it must not go on showing.
    *xattrs* says whether there are extended attributes.
    """

    supports_dot_lookup = True
    enable_writeback_cache = False
    enable_acl = False

    def __init__(self, volume: Volume, replies: Replies, kernel: FuseKernelCache, *, xattrs: bool) -> None:
        super().__init__()
        self._kernel = kernel
        self._volume = volume
        self._replies = replies
        self.has_xattrs = xattrs
        self._files: Handles[OpenFile] = Handles()
        self._listings: Handles[Listing] = Handles()

    # --- inodes

    async def lookup(
        self, parent_inode: pyfuse3.InodeT, name: pyfuse3.FileNameT, ctx: pyfuse3.RequestContext
    ) -> pyfuse3.EntryAttributes:
        """Return what *name* means, or that it is absent. The kernel may cache either."""
        inode = self._volume.lookup(EntryKey(parent_inode, name))
        return self._replies.absent if inode is None else self._replies.show_and_count(inode)

    async def forget(self, inode_list: Sequence[tuple[pyfuse3.InodeT, int]]) -> None:
        """Take back references. An inode without a name goes with the last."""
        for ino, count in inode_list:
            if not self._volume.forget(ino, count):
                _log.error("the kernel forgets %d references to inode %d, which has fewer", count, ino)

    async def getattr(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> pyfuse3.EntryAttributes:
        """Return attributes."""
        return self._replies.show(self._volume.inode(inode))

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
            atime_ns=_new_time(attr.st_atime_ns) if fields.update_atime else None,
            mtime_ns=_new_time(attr.st_mtime_ns) if fields.update_mtime else None,
        )
        return self._replies.show(await self._volume.setattr(inode, new))

    async def readlink(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> pyfuse3.FileNameT:
        """Return where a symbolic link leads."""
        return pyfuse3.FileNameT(self._volume.inode(inode).attributes.target)

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
        return self._replies.show_and_count(await self._create(EntryKey(parent_inode, name), mode, ctx, rdev=rdev))

    async def mkdir(
        self,
        parent_inode: pyfuse3.InodeT,
        name: pyfuse3.FileNameT,
        mode: pyfuse3.ModeT,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Make a directory."""
        return self._replies.show_and_count(await self._create(EntryKey(parent_inode, name), mode, ctx))

    async def symlink(
        self,
        parent_inode: pyfuse3.InodeT,
        name: pyfuse3.FileNameT,
        target: pyfuse3.FileNameT,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Make a symbolic link."""
        return self._replies.show_and_count(
            await self._create(EntryKey(parent_inode, name), stat.S_IFLNK | 0o777, ctx, target=target)
        )

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
        return self.opened(inode.ino, flags & ~os.O_TRUNC), self._replies.show_and_count(inode)

    async def link(
        self,
        inode: pyfuse3.InodeT,
        new_parent_inode: pyfuse3.InodeT,
        new_name: pyfuse3.FileNameT,
        ctx: pyfuse3.RequestContext,
    ) -> pyfuse3.EntryAttributes:
        """Give an inode another name."""
        return self._replies.show_and_count(await self._volume.link(inode, EntryKey(new_parent_inode, new_name)))

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
        await self._volume.rename(source, target, flags, ctx.uid, ctx.gid)

    # --- files

    async def open(self, inode: pyfuse3.InodeT, flags: pyfuse3.FlagT, ctx: pyfuse3.RequestContext) -> pyfuse3.FileInfo:
        """Open a file; O_TRUNC arrives here, since libfuse asks the kernel for atomic truncation."""
        if flags & os.O_TRUNC:
            is_member = None if ctx.uid == _SUPERUSER else partial(_is_member, ctx)
            await self._volume.truncate_on_open(inode, is_member)
        return self.opened(inode, flags)

    def opened(self, ino: int, flags: int) -> pyfuse3.FileInfo:
        """Return the reply to an open. Cached pages stay valid, because nobody else writes."""
        file = OpenFile(ino, truncated=bool(flags & os.O_TRUNC), direct=bool(flags & os.O_DIRECT))
        self._replies.opened(file)
        return pyfuse3.FileInfo(fh=pyfuse3.FileHandleT(self._files.add(file)), keep_cache=True)

    async def read(self, fh: pyfuse3.FileHandleT, off: int, size: int) -> bytes:
        """Read from memory."""
        return self._volume.read(self._files[fh].ino, off, size)

    async def write(self, fh: pyfuse3.FileHandleT, off: int, buf: bytes) -> int:
        """Write; all of *buf* is stored when this returns.

        If a write is refused, the kernel must drop its data, which may come from a shared mapping. After a write with
        O_DIRECT the kernel must drop its cached pages: some may have been read before the write was done.
        """
        file = self._files[fh]
        try:
            await self._volume.write(file.ino, off, buf)
        except BaseException:
            self._kernel.drop_refused(file.ino)
            raise
        if file.direct:
            await self._kernel.drop_content(file.ino)
        return len(buf)

    async def fsync(self, fh: pyfuse3.FileHandleT, datasync: bool) -> None:
        """Do what the store's fsync adds to a commit."""
        await self._volume.sync(self._files[fh].ino)

    async def release(self, fh: pyfuse3.FileHandleT) -> None:
        """Close a file. If opening it emptied it and nothing was written, the store gets that now."""
        file = self._files.pop(fh)
        self._replies.closed(file)
        if file.truncated:
            self._volume.store_truncation_soon(file.ino)

    # --- directories

    async def opendir(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> pyfuse3.FileHandleT:
        """Open a directory."""
        listing = Listing(inode, self._volume.directory(inode))
        return pyfuse3.FileHandleT(self._listings.add(listing))

    async def readdir(self, fh: pyfuse3.FileHandleT, start_id: int, token: pyfuse3.ReaddirToken) -> None:
        """List entries after *start_id*. Each one that fits gives the kernel a reference, except the two dots."""
        inodes, show, reply = self._volume.inodes, self._replies.show, pyfuse3.readdir_reply
        for name, ino, cookie in self._listings[fh].after(start_id):
            inode = inodes.get(ino)
            if inode is None:  # the parent of a directory that has been removed
                continue
            if not reply(token, name, show(inode), cookie):
                return
            if cookie >= FIRST_COOKIE:
                inode.lookups += 1

    async def fsyncdir(self, fh: pyfuse3.FileHandleT, datasync: bool) -> None:
        """As :meth:`fsync`."""
        await self._volume.sync(self._listings[fh].ino)

    async def releasedir(self, fh: pyfuse3.FileHandleT) -> None:
        """Close a directory."""
        del self._listings[fh]

    # --- the file system

    async def statfs(self, ctx: pyfuse3.RequestContext) -> pyfuse3.StatvfsData:
        """Return how much room there is: the store's room, as last measured."""
        room = self._volume.room()
        files = self._volume.files + 1  # the root has an inode too, and --max-files counts it
        answer = pyfuse3.StatvfsData()
        answer.f_bsize = answer.f_frsize = _BLOCK
        answer.f_blocks = room.total // _BLOCK
        answer.f_bfree = answer.f_bavail = room.free // _BLOCK
        most = self._volume.limits.max_files
        answer.f_ffree = answer.f_favail = max(0, most - files) if most else room.free // _BYTES_PER_FILE
        answer.f_files = most or files + answer.f_ffree
        answer.f_namemax = NAME_MAX
        return answer

    # --- extended attributes

    async def getxattr(self, inode: pyfuse3.InodeT, name: pyfuse3.XAttrNameT, ctx: pyfuse3.RequestContext) -> bytes:
        """Return the value of one attribute."""
        self._check_xattr(name)
        return self._volume.xattr(inode, name)

    async def listxattr(self, inode: pyfuse3.InodeT, ctx: pyfuse3.RequestContext) -> Sequence[pyfuse3.XAttrNameT]:
        """Return the names of all. Only the superuser may know those in ``trusted.`` (:manpage:`xattr(7)`)."""
        self._check_xattr()
        names = (name for name, _ in self._volume.inode(inode).attributes.xattrs)
        return [pyfuse3.XAttrNameT(name) for name in names if ctx.uid == 0 or not name.startswith(b"trusted.")]

    async def setxattr(
        self, inode: pyfuse3.InodeT, name: pyfuse3.XAttrNameT, value: bytes, ctx: pyfuse3.RequestContext
    ) -> None:
        """Set one attribute."""
        self._check_xattr(name)
        await self._volume.setxattr(inode, name, value)

    async def removexattr(self, inode: pyfuse3.InodeT, name: pyfuse3.XAttrNameT, ctx: pyfuse3.RequestContext) -> None:
        """Remove one attribute."""
        self._check_xattr(name)
        await self._volume.removexattr(inode, name)

    def _check_xattr(self, name: bytes = b"") -> None:
        """Raise ENOSYS unless attributes are enabled, EOPNOTSUPP for a namespace that is not kept.

        ACLs (``system.``) are not: stored but not enforced, they would lie.
        """
        if not self.has_xattrs:
            raise FsError(errno.ENOSYS)
        if name and not name.startswith(_XATTR_NAMESPACES):
            raise FsError(errno.EOPNOTSUPP)


def _new_time(time_ns: int) -> NewTime:
    """Return a time that the kernel wants to have set: what it means as "now" is the time of the change."""
    return NOW if clock.is_kernel_now(time_ns) else time_ns


def _is_member(ctx: pyfuse3.RequestContext, gid: int) -> bool:
    """Return whether the caller is in group *gid*. One whose groups cannot be found out is not."""
    if gid == ctx.gid:
        return True
    with suppress(OSError, RuntimeError):  # it has ended, or is in another PID namespace
        return gid in pyfuse3.get_sup_groups(ctx.pid)
    return False
