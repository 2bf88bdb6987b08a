"""Drafts of changes: only here do planners set times, count links, and put and drop names.

A planner reads attributes through a draft, tells it what should change, and takes the finished
:class:`~vfsd.tree.change.Change`. A draft never changes the tree. So a planner that raises has changed nothing.
"""

import errno
from collections.abc import Mapping
from typing import Any

from vfsd.errors import FsError
from vfsd.tree.change import (
    Attributes,
    Change,
    Chunk,
    DropChunks,
    DropEntry,
    DropInode,
    Op,
    PutChunks,
    PutEntry,
    PutInode,
)
from vfsd.tree.inode import FIRST_COOKIE, Directory
from vfsd.tree.tree import Tree

NAME_MAX = 255
"""Longest name in bytes (:manpage:`pathconf(3)`, NAME_MAX on Linux)."""


class Draft:
    """Collects what one mutation of *tree* at time *now_ns* changes."""

    def __init__(self, tree: Tree, now_ns: int) -> None:
        self.tree = tree
        self.now_ns = now_ns
        self._attributes: dict[int, Attributes] = {}
        self._cookies: dict[int, int] = {}
        self._names: list[Op] = []
        self._content: list[Op] = []

    def attributes(self, ino: int) -> Attributes:
        """Return the attributes of *ino* after the changes of this draft. Errors: ESTALE (no such inode)."""
        drafted = self._attributes.get(ino)
        return self.tree.inode(ino).attributes if drafted is None else drafted

    def add(self, ino: int, attributes: Attributes) -> None:
        """Add a new inode, with all its attributes."""
        self._attributes[ino] = attributes

    def update(self, ino: int, **fields: Any) -> None:
        """Replace *fields* of the attributes of *ino*, and set its change time."""
        self._attributes[ino] = self.attributes(ino)._replace(ctime_ns=self.now_ns, **fields)

    def modify(self, ino: int, **fields: Any) -> None:
        """Do what :meth:`update` does, for a change of what *ino* contains: this sets its modification time too."""
        self.update(ino, **{"mtime_ns": self.now_ns, **fields})

    def count_link(self, ino: int, difference: int) -> None:
        """Add *difference* to the number of links to *ino*."""
        self.update(ino, nlink=self.attributes(ino).nlink + difference)

    def unlink(self, ino: int) -> None:
        """Remove one link from *ino*. A directory loses both at once: its name, and its own ``.``."""
        attributes = self.attributes(ino)
        self.update(ino, nlink=0 if attributes.is_directory else attributes.nlink - 1)

    def put_entry(self, parent: int, name: bytes, ino: int) -> None:
        """Make *name* in *parent* an entry for *ino*. A name that exists keeps its position in listings."""
        self._names.append(PutEntry(parent, name, ino, self._cookie(parent, name)))

    def _cookie(self, parent: int, name: bytes) -> int:
        """Return the cookie of *name* in *parent*, which may be a directory that this draft adds."""
        next_cookie = self._cookies.get(parent, FIRST_COOKIE)
        if parent in self.tree.inodes or parent not in self._attributes:
            directory = self.tree.directory(parent)
            present = directory.entries.get(name)
            if present is not None:
                return present.cookie
            next_cookie = max(next_cookie, directory.next_cookie)
        self._cookies[parent] = next_cookie + 1
        return next_cookie

    def drop_entry(self, parent: int, name: bytes) -> None:
        """Remove *name* from *parent*."""
        self._names.append(DropEntry(parent, name))

    def put_chunks(self, ino: int, chunks: Mapping[int, Chunk]) -> None:
        """Replace chunks of *ino*."""
        if chunks:
            inode = self.tree.inodes.get(ino)
            replaced = len(chunks.keys() & inode.chunks.keys()) if inode is not None else 0
            self._content.append(PutChunks(ino, dict(chunks), replaced))

    def drop_chunks(self, ino: int, numbers: tuple[int, ...] | None) -> None:
        """Remove chunks of *ino*, so that they read as zeros: those with these *numbers*, or all (None)."""
        if numbers is None or numbers:
            self._content.append(DropChunks(ino, numbers))

    def change(self, *, grows: bool) -> Change:
        """Return the finished change: inodes come before the names that lead to them, removed inodes come last."""
        puts: list[Op] = []
        drops: list[Op] = []
        for ino, attributes in self._attributes.items():
            if attributes.nlink:
                puts.append(PutInode(ino, attributes))
            else:
                drops.append(DropInode(ino, attributes))
        return Change((*puts, *self._names, *self._content, *drops), grows)


def check_name(name: bytes) -> None:
    """Refuse a name that is too long. The kernel never sends ``/``, ``.`` or NUL here. Errors: ENAMETOOLONG."""
    if len(name) > NAME_MAX:
        raise FsError(errno.ENAMETOOLONG)


def linked_directory(tree: Tree, ino: int) -> Directory:
    """Return directory *ino*, which must still have a name itself. Errors: ENOENT (removed), ENOTDIR, ESTALE."""
    directory = tree.directory(ino)
    if tree.inode(ino).is_orphan:
        raise FsError(errno.ENOENT)
    return directory
