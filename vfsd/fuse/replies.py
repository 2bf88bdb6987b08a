"""How inodes look to the kernel: the one conversion to its attributes, and how long it may believe them.

This daemon is the only writer, so the kernel may cache names, attributes and the absence of names for long. Only
attributes of a file that is open with O_DIRECT it may not keep: the kernel drops them, and pages, when it sends an
asynchronous write, not when that is done, and what it reads in between would be out of date for good.
"""

from collections import Counter

import pyfuse3

from vfsd.fuse.handles import OpenFile
from vfsd.tree.change import CHUNK_SIZE
from vfsd.tree.inode import Inode

CACHED = 86_400.0
"""Seconds for which the kernel may use a name, its absence, or attributes without asking again."""

_SECTOR = 512
_SECTORS_PER_CHUNK = CHUNK_SIZE // _SECTOR


class Replies:
    """Makes the kernel's attributes; with *owner* every file is shown as belonging to that uid and gid."""

    def __init__(self, owner: tuple[int, int] | None) -> None:
        self._owner = owner
        self._direct: Counter[int] = Counter()
        self.absent = pyfuse3.EntryAttributes()
        """The answer to a lookup of a name that is not there: may be cached, which plain ENOENT may not."""
        self.absent.st_ino = pyfuse3.InodeT(0)
        self.absent.entry_timeout = CACHED

    def opened(self, file: OpenFile) -> None:
        """Take note of *file*, until it is :meth:`closed`."""
        if file.direct:
            self._direct[file.ino] += 1

    def closed(self, file: OpenFile) -> None:
        """Undo :meth:`opened`."""
        if file.direct:
            self._direct -= Counter((file.ino,))  # which leaves out those that come to nothing

    def entry(self, inode: Inode) -> pyfuse3.EntryAttributes:
        """Return the attributes of *inode*; whoever gets them has seen its modification time."""
        inode.shown = True
        mode, nlink, uid, gid, rdev, size, atime_ns, mtime_ns, ctime_ns, _, _ = inode.attributes
        entry = pyfuse3.EntryAttributes()
        entry.st_ino = inode.ino
        entry.st_mode = mode
        entry.entry_timeout = CACHED
        entry.attr_timeout = 0.0 if inode.ino in self._direct else CACHED
        entry.st_nlink = nlink
        entry.st_uid, entry.st_gid = self._owner or (uid, gid)
        entry.st_rdev = rdev
        entry.st_size = size
        if inode.chunks:
            entry.st_blocks = _sectors(len(inode.chunks), size)
        entry.st_atime_ns = atime_ns
        entry.st_mtime_ns = mtime_ns
        entry.st_ctime_ns = ctime_ns
        return entry


def _sectors(chunks: int, size: int) -> int:
    """Return the 512-byte blocks that so many *chunks* take, but no more than *size* bytes do, so that holes show."""
    return min(chunks * _SECTORS_PER_CHUNK, -(-size // _SECTOR))
