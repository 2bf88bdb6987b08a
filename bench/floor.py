"""The floor of the stack: the lowest cost of a file system in Python on pyfuse3 and trio.

It is a tree of dictionaries, and replies to the kernel as :mod:`vfsd.fuse` does. The kernel caches names, absent names
and attributes for a day. ``flush`` and extended attributes return ENOSYS. The kernel checks the permissions. The floor
has no store, no limits and no checks. It must never be used for anything except a comparison.
"""

import errno
import os
import stat
import sys
import time
from collections.abc import Sequence
from itertools import count, islice

import pyfuse3
import trio
from pyfuse3 import EntryAttributes, FileHandleT, FileInfo, FileNameT, FlagT, FUSEError, InodeT, ModeT, RequestContext

_CACHED = 86_400.0


class _Node:
    """A file or a directory. Its attributes have the form that the kernel expects."""

    def __init__(self, ino: int, mode: int, ctx: RequestContext | None = None) -> None:
        self.content = bytearray()
        self.entries: dict[bytes, _Node] = {}
        self.entry = entry = EntryAttributes()
        entry.st_ino, entry.st_mode = InodeT(ino), ModeT(mode)
        entry.entry_timeout = entry.attr_timeout = _CACHED
        entry.st_uid, entry.st_gid = (ctx.uid, ctx.gid) if ctx else (os.getuid(), os.getgid())
        entry.st_nlink = 2 if stat.S_ISDIR(mode) else 1
        self.touch()

    def touch(self) -> None:
        self.entry.st_mtime_ns = self.entry.st_ctime_ns = time.time_ns()


class Floor(pyfuse3.Operations):
    """The tree, by inode number. A file handle is the inode number of its file."""

    supports_dot_lookup = True
    enable_writeback_cache = False

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count(pyfuse3.ROOT_INODE)
        root = self._create(stat.S_IFDIR | 0o755)
        self._nodes: dict[int, _Node] = {root.entry.st_ino: root}
        self._absent = EntryAttributes()
        self._absent.st_ino, self._absent.entry_timeout = InodeT(0), _CACHED

    def _create(self, mode: int, ctx: RequestContext | None = None) -> _Node:
        return _Node(next(self._numbers), mode, ctx)

    def _add(self, parent: int, name: bytes, mode: int, ctx: RequestContext) -> EntryAttributes:
        node, directory = self._create(mode, ctx), self._nodes[parent]
        self._nodes[node.entry.st_ino] = directory.entries[name] = node
        directory.touch()
        return node.entry

    async def lookup(self, parent_inode: InodeT, name: FileNameT, ctx: RequestContext) -> EntryAttributes:
        """Return the attributes of *name*, or a negative entry if it does not exist."""
        node = self._nodes[parent_inode].entries.get(name)
        return node.entry if node else self._absent

    async def forget(self, inode_list: Sequence[tuple[InodeT, int]]) -> None:
        """Remove the inodes that have no name. Unlike vfsd, the floor has no lookup counts."""
        for ino, _ in inode_list:
            if (node := self._nodes.get(ino)) and not node.entry.st_nlink:
                del self._nodes[ino]

    async def getattr(self, inode: InodeT, ctx: RequestContext) -> EntryAttributes:
        """Return the attributes."""
        return self._nodes[inode].entry

    async def setattr(
        self,
        inode: InodeT,
        attr: EntryAttributes,
        fields: pyfuse3.SetattrFields,
        fh: FileHandleT | None,
        ctx: RequestContext,
    ) -> EntryAttributes:
        """Change mode, owner, size and modification time."""
        node = self._nodes[inode]
        entry = node.entry
        if fields.update_size:
            size = len(node.content)
            del node.content[attr.st_size :]
            node.content.extend(bytes(max(0, attr.st_size - size)))
            entry.st_size = attr.st_size
        entry.st_mode = attr.st_mode if fields.update_mode else entry.st_mode
        entry.st_uid = attr.st_uid if fields.update_uid else entry.st_uid
        entry.st_gid = attr.st_gid if fields.update_gid else entry.st_gid
        entry.st_mtime_ns = attr.st_mtime_ns if fields.update_mtime else entry.st_mtime_ns
        return entry

    async def mknod(
        self, parent_inode: InodeT, name: FileNameT, mode: ModeT, rdev: int, ctx: RequestContext
    ) -> EntryAttributes:
        """Create an empty file."""
        return self._add(parent_inode, name, mode, ctx)

    async def mkdir(self, parent_inode: InodeT, name: FileNameT, mode: ModeT, ctx: RequestContext) -> EntryAttributes:
        """Create a directory."""
        return self._add(parent_inode, name, mode, ctx)

    async def symlink(
        self, parent_inode: InodeT, name: FileNameT, target: FileNameT, ctx: RequestContext
    ) -> EntryAttributes:
        """Create a symbolic link."""
        entry = self._add(parent_inode, name, stat.S_IFLNK | 0o777, ctx)
        self._nodes[entry.st_ino].content[:] = target
        return entry

    async def readlink(self, inode: InodeT, ctx: RequestContext) -> FileNameT:
        """Return the target of a symbolic link."""
        return FileNameT(bytes(self._nodes[inode].content))

    async def create(
        self, parent_inode: InodeT, name: FileNameT, mode: ModeT, flags: FlagT, ctx: RequestContext
    ) -> tuple[FileInfo, EntryAttributes]:
        """Create a file and open it."""
        entry = self._add(parent_inode, name, stat.S_IFREG | mode, ctx)
        return FileInfo(fh=FileHandleT(entry.st_ino), keep_cache=True), entry

    async def unlink(self, parent_inode: InodeT, name: FileNameT, ctx: RequestContext) -> None:
        """Remove a name."""
        directory = self._nodes[parent_inode]
        directory.entries.pop(name).entry.st_nlink = 0
        directory.touch()

    async def rmdir(self, parent_inode: InodeT, name: FileNameT, ctx: RequestContext) -> None:
        """Remove an empty directory."""
        if self._nodes[parent_inode].entries[name].entries:
            raise FUSEError(errno.ENOTEMPTY)
        await self.unlink(parent_inode, name, ctx)

    async def rename(  # noqa: PLR0913, PLR0917 (pyfuse3's signature)
        self,
        parent_inode_old: InodeT,
        name_old: FileNameT,
        parent_inode_new: InodeT,
        name_new: FileNameT,
        flags: FlagT,
        ctx: RequestContext,
    ) -> None:
        """Move a name, and replace the new name if it exists."""
        source, target = self._nodes[parent_inode_old], self._nodes[parent_inode_new]
        if (replaced := target.entries.get(name_new)) is not None:
            replaced.entry.st_nlink = 0
        target.entries[name_new] = source.entries.pop(name_old)
        source.touch()
        target.touch()

    async def open(self, inode: InodeT, flags: FlagT, ctx: RequestContext) -> FileInfo:
        """Open a file, and truncate it if O_TRUNC is set."""
        if flags & os.O_TRUNC:
            self._nodes[inode].content.clear()
            self._nodes[inode].entry.st_size = 0
        return FileInfo(fh=FileHandleT(inode), keep_cache=True)

    async def read(self, fh: FileHandleT, off: int, size: int) -> bytes:
        """Return content."""
        return bytes(memoryview(self._nodes[fh].content)[off : off + size])

    async def write(self, fh: FileHandleT, off: int, buf: bytes) -> int:
        """Write content."""
        node = self._nodes[fh]
        node.content.extend(bytes(max(0, off - len(node.content))))
        node.content[off : off + len(buf)] = buf
        node.entry.st_size = len(node.content)
        node.touch()
        return len(buf)

    async def fsync(self, fh: FileHandleT, datasync: bool) -> None:
        """Do nothing: there is no store."""

    async def release(self, fh: FileHandleT) -> None:
        """Do nothing: a handle has no state."""

    async def opendir(self, inode: InodeT, ctx: RequestContext) -> FileHandleT:
        """Open a directory."""
        return FileHandleT(inode)

    async def readdir(self, fh: FileHandleT, start_id: int, token: pyfuse3.ReaddirToken) -> None:
        """List the entries. The position of an entry is its index."""
        entries = islice(self._nodes[fh].entries.items(), start_id, None)
        for index, (name, node) in enumerate(entries, start_id + 1):
            if not pyfuse3.readdir_reply(token, FileNameT(name), node.entry, index):
                return

    async def releasedir(self, fh: FileHandleT) -> None:
        """Do nothing: a handle has no state."""

    async def statfs(self, ctx: RequestContext) -> pyfuse3.StatvfsData:
        """Return that there is free space."""
        answer = pyfuse3.StatvfsData()
        answer.f_bsize = answer.f_frsize = 4096
        answer.f_blocks = answer.f_bfree = answer.f_bavail = answer.f_files = answer.f_ffree = answer.f_favail = 1 << 24
        answer.f_namemax = 255
        return answer


def main(mountpoint: str) -> None:
    """Serve an empty tree at *mountpoint* until it is unmounted."""
    pyfuse3.init(Floor(), mountpoint, {"default_permissions", "fsname=floor"})
    try:
        trio.run(lambda: pyfuse3.main(min_tasks=8, max_tasks=1024))
    finally:
        pyfuse3.close(unmount=True)


if __name__ == "__main__":
    main(sys.argv[1])
