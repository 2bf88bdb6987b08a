"""Reading files and directories of a mounted scope by their paths, for the control socket.

Nothing here awaits, takes a lock or changes anything, except that it records which modification times were seen.
"""

import errno
from typing import NamedTuple

from vfsd.errors import FsError
from vfsd.files.resolve import PathResolver, ResolvedPath, listing
from vfsd.tree.change import ROOT, Attributes
from vfsd.tree.chunks import read_chunks
from vfsd.tree.inode import Inode
from vfsd.tree.tree import Tree

MAX_BYTES = 64 << 20
"""Most bytes that one call reads or writes."""


class Content(NamedTuple):
    """What was read, the size of the complete file in bytes, and when the file was last modified (ns)."""

    data: bytes
    size: int
    mtime_ns: int


class FileReader:
    """Reads *tree* by *paths*. If *owner* (uid, gid) is given, every file is shown as belonging to it.

    All methods raise FsError for a path that cannot be followed: see :meth:`PathResolver.find`.
    """

    def __init__(self, tree: Tree, paths: PathResolver, owner: tuple[int, int] | None) -> None:
        self._tree = tree
        self._paths = paths
        self._owner = owner

    def read(self, path: bytes, offset: int = 0, length: int | None = None) -> Content:
        """Return at most *length* bytes of a file from *offset*. None means up to the end.

        Errors: ENOENT, EISDIR, EINVAL (neither file nor directory), EFBIG (more than :data:`MAX_BYTES` at once).
        """
        inode = regular_file(self._paths.find(path))
        size = inode.attributes.size
        count = max(0, size - offset) if length is None else min(length, max(0, size - offset))
        if count > MAX_BYTES:
            raise too_large("read it in pieces, by offset and length, or through the mount")
        return Content(read_chunks(inode.chunks, size, offset, count), size, show(inode).mtime_ns)

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

    def readdir(self, path: bytes, *, recursive: bool = False) -> list[tuple[bytes, Attributes]]:
        """Return what is in a directory: relative paths and attributes, sorted. Errors: ENOENT, ENOTDIR."""
        found = listing(self._tree, self._paths.find(path).existing(), recursive=recursive)
        return [(name, show(inode)) for name, inode in found]

    def all_paths(self) -> list[bytes]:
        """Return the paths of all files that are not directories, relative to the root, sorted."""
        found = listing(self._tree, self._tree.inode(ROOT), recursive=True)
        return [path for path, inode in found if inode.directory is None]

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
