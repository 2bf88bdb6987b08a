"""How inodes look to the kernel: the one conversion to its attributes, and how long it may believe them.

This daemon is the only writer, so the kernel may cache names, attributes and the absence of names for long. It may not
cache the attributes of a file that is open with O_DIRECT: the kernel drops attributes and pages when it sends an
asynchronous write, not when the write is done. What it reads in between would stay wrong for good.

A lookup count changes together with building the reply that the kernel counts, with no ``await`` in between (pyfuse3
documentation, "Lookup Counts").
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
    """Builds replies about inodes. With *owner* every file is shown as belonging to that uid and gid."""

    def __init__(self, owner: tuple[int, int] | None) -> None:
        self._owner = owner
        self._direct: Counter[int] = Counter()
        self.absent = pyfuse3.EntryAttributes()
        """The answer to a lookup of a missing name. The kernel may cache it, which it cannot do with ENOENT."""
        self.absent.st_ino = pyfuse3.InodeT(0)
        self.absent.entry_timeout = CACHED

    def opened(self, file: OpenFile) -> None:
        """Record *file* until it is :meth:`closed`."""
        if file.direct:
            self._direct[file.ino] += 1

    def closed(self, file: OpenFile) -> None:
        """Undo :meth:`opened`."""
        if file.direct:
            self._direct -= Counter((file.ino,))  # this also removes counts of zero

    def show(self, inode: Inode) -> pyfuse3.EntryAttributes:
        """Return the attributes of *inode*, and record that its modification time has been seen."""
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

    def show_and_count(self, inode: Inode) -> pyfuse3.EntryAttributes:
        """Return the reply that gives the kernel one more reference to *inode*, and count it."""
        entry = self.show(inode)
        inode.lookups += 1
        return entry


def _sectors(chunks: int, size: int) -> int:
    """Return the 512-byte blocks that *chunks* take, but no more than *size* bytes take, so that holes are visible."""
    return min(chunks * _SECTORS_PER_CHUNK, -(-size // _SECTOR))
