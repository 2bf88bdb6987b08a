"""What whole files and directories of a mounted scope look like, by their paths: the readers behind the control socket.

Nothing here awaits, takes a turn or changes anything, but for the note that a modification time has been seen.
"""

import errno
from typing import NamedTuple

from vfsd.errors import FsError
from vfsd.files.resolve import PathResolver, ResolvedPath, listing
from vfsd.tree.change import ROOT, Attributes
from vfsd.tree.chunks import read_chunks
from vfsd.tree.inode import Inode
from vfsd.tree.tree import Tree

WHOLE_MAX = 64 << 20
"""Most bytes that are read or written in one step."""


class Content(NamedTuple):
    """What was read, the size of the whole file, and when it was last modified (ns)."""

    data: bytes
    size: int
    mtime_ns: int


class FileReader:
    """Reads *tree* by *paths*. *owner* (uid, gid) is shown for every file, if given.

    All methods raise FsError for what a path or a rule refuses: see :meth:`vfsd.files.resolve.Paths.find`.
    """

    def __init__(self, tree: Tree, paths: PathResolver, owner: tuple[int, int] | None) -> None:
        self._tree = tree
        self._paths = paths
        self._owner = owner

    def read(self, path: bytes, offset: int = 0, length: int | None = None) -> Content:
        """Return at most *length* bytes of a file from *offset*; None means to the end.

        Errors: ENOENT, EISDIR, EINVAL (neither file nor directory), EFBIG (more than :data:`WHOLE_MAX` at once).
        """
        inode = regular(self._paths.find(path))
        size = inode.attributes.size
        wanted = max(0, size - offset) if length is None else min(length, max(0, size - offset))
        if wanted > WHOLE_MAX:
            raise too_large("read it in pieces, by offset and length, or through the mount")
        return Content(read_chunks(inode.chunks, size, offset, wanted), size, shown(inode).mtime_ns)

    def stat(self, path: bytes, *, follow: bool = True) -> tuple[int, Attributes]:
        """Return the inode number and the attributes of what is at *path*, as the mount shows them. Errors: ENOENT."""
        inode = self._paths.find(path, follow=follow).existing()
        uid, gid = self._owner or (inode.attributes.uid, inode.attributes.gid)
        return inode.ino, shown(inode)._replace(uid=uid, gid=gid)

    def exists(self, path: bytes) -> bool:
        """Whether something is at *path*; not, if that cannot be followed to its end."""
        try:
            return self._paths.find(path).inode is not None
        except FsError as error:
            if error.errno in {errno.ENOTDIR, errno.ELOOP, errno.EXDEV, errno.ENAMETOOLONG}:
                return False
            raise

    def readdir(self, path: bytes, *, recursive: bool = False) -> list[tuple[bytes, Attributes]]:
        """Return what is in a directory, by relative path, sorted. Errors: ENOENT, ENOTDIR."""
        found = listing(self._tree, self._paths.find(path).existing(), recursive=recursive)
        return [(name, shown(inode)) for name, inode in found]

    def all_paths(self) -> list[bytes]:
        """Return the path of everything that is no directory, relative to the root, sorted."""
        everything = listing(self._tree, self._tree.inode(ROOT), recursive=True)
        return [path for path, inode in everything if inode.directory is None]

    def realpath(self, path: bytes) -> bytes:
        """Return *path* absolute, below the mountpoint, without links. Errors: ENOENT."""
        spot = self._paths.find(path)
        spot.existing()
        return self._paths.absolute(spot.names)


def regular(spot: ResolvedPath) -> Inode:
    """Return the regular file at *spot*. Errors: ENOENT, EISDIR, EINVAL."""
    inode = spot.existing()
    if inode.directory is not None:
        raise FsError(errno.EISDIR)
    if not inode.attributes.is_regular:
        raise FsError(errno.EINVAL, "not a regular file")
    return inode


def shown(inode: Inode) -> Attributes:
    """Return attributes for somebody to see: who writes next must move the modification time."""
    inode.shown = True
    return inode.attributes


def too_large(remedy: str) -> FsError:
    """Return the error for what is more than :data:`WHOLE_MAX`."""
    return FsError(errno.EFBIG, f"more than {WHOLE_MAX >> 20} MiB in one step; {remedy}")
