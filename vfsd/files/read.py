"""Reading files and directories of a mounted scope by their paths, for the control socket.

Nothing here awaits, takes a lock or changes anything, except that it records which modification times were seen.
"""

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from vfsd.errors import FsError
from vfsd.files.resolve import PathResolver, ResolvedPath
from vfsd.files.walk import Listed, Listings
from vfsd.tree.change import CHUNK_SIZE, ROOT, Attributes
from vfsd.tree.chunks import read_chunks
from vfsd.tree.inode import Inode
from vfsd.tree.tree import Tree

MAX_BYTES = 64 << 20
"""Most bytes that one call reads or writes."""


class Content(NamedTuple):
    """*length* bytes from *offset* of a file that has *size* bytes and was last modified at *mtime_ns*.

    *chunks* has them as they were when they were read, whatever happens to the file later.
    """

    chunks: Mapping[int, bytes]
    offset: int
    length: int
    size: int
    mtime_ns: int

    def pieces(self, longest: int) -> Iterator[bytes]:
        """Yield the content in pieces of *longest* bytes; the last may be shorter."""
        end = self.offset + self.length
        for start in range(self.offset, end, longest):
            yield read_chunks(self.chunks, self.size, start, min(longest, end - start))


class FileReader:
    """Reads *tree* by *paths*. If *owner* (uid, gid) is given, every file is shown as belonging to it.

    *listings* is the hook for listings that are under way.

    All methods raise FsError for a path that cannot be followed: see :meth:`PathResolver.find`.
    """

    def __init__(
        self, tree: Tree, paths: PathResolver, owner: tuple[int, int] | None, listings: Listings | None = None
    ) -> None:
        self._tree = tree
        self._paths = paths
        self._listings = listings or Listings(tree)
        self._owner = owner

    def read(self, path: bytes, offset: int = 0, length: int | None = None) -> Content:
        """Return at most *length* bytes of a file from *offset*. None means up to the end.

        Errors: ENOENT, EISDIR, EINVAL (neither file nor directory), EFBIG (more than :data:`MAX_BYTES` at once).
        """
        inode = regular_file(self._paths.find(path))
        size = inode.attributes.size
        left = max(0, size - offset)
        count = left if length is None else min(length, left)
        if count > MAX_BYTES:
            raise too_large("read it in pieces, by offset and length, or through the mount")
        numbers = range(offset // CHUNK_SIZE, (offset + count) // CHUNK_SIZE + 1)
        chunks = {number: inode.chunks[number] for number in numbers if number in inode.chunks}
        return Content(chunks, offset, count, size, show(inode).mtime_ns)

    def stat(self, path: bytes, *, follow: bool = True) -> tuple[int, Attributes]:
        """Return the inode number and the attributes of what is at *path*, as the mount shows them. Errors: ENOENT."""
        inode = self._paths.find(path, follow=follow).existing()
        uid, gid = self._owner or (inode.attributes.uid, inode.attributes.gid)
        return inode.ino, show(inode)._replace(uid=uid, gid=gid)

    def exists(self, path: bytes) -> bool:
        """Whether something is at *path*. False if the path cannot be followed to its end."""
        try:
            return self._paths.find(path).inode is not None
        except FsError as error:
            if error.errno in {errno.ENOTDIR, errno.ELOOP, errno.EXDEV, errno.ENAMETOOLONG}:
                return False
            raise

    @contextmanager
    def readdir(self, path: bytes, *, recursive: bool = False) -> Iterator[Iterator[Listed | None]]:
        """Begin a listing of a directory: see :meth:`Listings.listing`. Errors: ENOENT, ENOTDIR."""
        directory = self._paths.find(path).existing()
        with self._listings.listing(directory, recursive=recursive) as found:
            yield map(self._shown, found)

    def _shown(self, listed: Listed | None) -> Listed | None:
        """Record that the modification time of *listed* has been seen."""
        if listed is not None and listed.ino in self._tree.inodes:
            self._tree.inodes[listed.ino].shown = True
        return listed

    @contextmanager
    def all_paths(self) -> Iterator[Iterator[bytes | None]]:
        """Begin a listing of the paths of all files that are not directories, relative to the root, sorted."""
        with self._listings.listing(self._tree.inode(ROOT), recursive=True) as found:
            yield (None if listed is None or listed.attributes.is_directory else listed.path for listed in found)

    def realpath(self, path: bytes) -> bytes:
        """Return *path* as an absolute path below the mountpoint, without symbolic links. Errors: ENOENT."""
        resolved = self._paths.find(path)
        resolved.existing()
        return self._paths.absolute(resolved.names)


def regular_file(resolved: ResolvedPath) -> Inode:
    """Return the regular file at *resolved*. Errors: ENOENT, EISDIR, EINVAL."""
    inode = resolved.existing()
    if inode.directory is not None:
        raise FsError(errno.EISDIR)
    if not inode.attributes.is_regular:
        raise FsError(errno.EINVAL, "not a regular file")
    return inode


def show(inode: Inode) -> Attributes:
    """Return the attributes of *inode*, and record that its modification time has been seen."""
    inode.shown = True
    return inode.attributes


def too_large(remedy: str) -> FsError:
    """Return the error for more than :data:`MAX_BYTES` in one step. *remedy* says what to do instead."""
    return FsError(errno.EFBIG, f"more than {MAX_BYTES >> 20} MiB in one step; {remedy}")
