"""A change in the making: the one place where attributes are re-stamped, links counted and names moved.

Planners read the tree through a draft, say what should become different, and take the finished
:class:`~vfsd.tree.change.Change`. The tree itself is never touched; a planner that raises has changed nothing.
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
from vfsd.tree.inode import FIRST_COOKIE, MILLISECOND, Directory, look_alike
from vfsd.tree.tree import Tree

NAME_MAX = 255
"""Longest name in bytes (:manpage:`pathconf(3)`, NAME_MAX on Linux)."""


MAX_LEAD = 1_000 * MILLISECOND
"""How far (ns) a stamp may run ahead of the clock. If it is further ahead, the clock was set back: follow the clock."""


def stamp(now_ns: int, last_ns: int, shown: bool) -> int:
    """Return the modification time (ns) for a change at *now_ns* of what was last modified at *last_ns*.

    Agents compare modification times in milliseconds. So if *shown* says that somebody has seen *last_ns*, the stamp is
    a whole millisecond later, even if that is a little ahead of the clock. A stamp that is ahead stays: the clock may
    still be in the millisecond that was seen before it.
    """
    if last_ns - now_ns > MAX_LEAD:
        return now_ns
    if shown and (now_ns < last_ns or look_alike(now_ns, last_ns)):
        return last_ns + MILLISECOND
    return max(now_ns, last_ns)


class Draft:
    """Collects what one mutation at time *now_ns* changes of *tree*."""

    def __init__(self, tree: Tree, now_ns: int) -> None:
        self.tree = tree
        self.now_ns = now_ns
        self._attributes: dict[int, Attributes] = {}
        self._cookies: dict[int, int] = {}
        self._modified_ns: dict[int, int] = {}
        self._names: list[Op] = []
        self._content: list[Op] = []

    def attributes(self, ino: int) -> Attributes:
        """Return the attributes of *ino* as this draft leaves them; ESTALE if there is no such inode."""
        drafted = self._attributes.get(ino)
        return self.tree.inode(ino).attributes if drafted is None else drafted

    def add(self, ino: int, attributes: Attributes) -> None:
        """Bring in a new inode, with all its attributes."""
        self._attributes[ino] = attributes

    def update(self, ino: int, **fields: Any) -> None:
        """Give *ino* other attributes; its change time is stamped, and does not go back where it ran ahead."""
        present = self.attributes(ino)
        changed_ns = stamp(self._modified_ns.get(ino, self.now_ns), present.ctime_ns, shown=False)
        self._attributes[ino] = present._replace(ctime_ns=changed_ns, **fields)

    def modify(self, ino: int, **fields: Any) -> None:
        """As :meth:`update`, for a change of what *ino* contains: its modification time moves too."""
        inode = self.tree.inode(ino)
        modified_ns = stamp(self.now_ns, inode.attributes.mtime_ns, inode.shown)
        self._modified_ns[ino] = modified_ns
        self.update(ino, **{"mtime_ns": modified_ns, **fields})

    def count_link(self, ino: int, difference: int) -> None:
        """Add *difference* to the number of links to *ino*."""
        self.update(ino, nlink=self.attributes(ino).nlink + difference)

    def unlink(self, ino: int) -> None:
        """Take one link from *ino*; a directory's two (its name, its own dot) go together."""
        attributes = self.attributes(ino)
        self.update(ino, nlink=0 if attributes.is_directory else attributes.nlink - 1)

    def put_entry(self, parent: int, name: bytes, ino: int) -> None:
        """Let *name* in *parent* mean *ino*; a name that is there already keeps its place in listings."""
        self._names.append(PutEntry(parent, name, ino, self._cookie(parent, name)))

    def _cookie(self, parent: int, name: bytes) -> int:
        """Return the place of *name* in listings of *parent*, which may be a directory that this draft brings in."""
        following = self._cookies.get(parent, FIRST_COOKIE)
        if parent in self.tree.inodes or parent not in self._attributes:
            directory = self.tree.directory(parent)
            present = directory.entries.get(name)
            if present is not None:
                return present.cookie
            following = max(following, directory.next_cookie)
        self._cookies[parent] = following + 1
        return following

    def drop_entry(self, parent: int, name: bytes) -> None:
        """Remove *name* from *parent*."""
        self._names.append(DropEntry(parent, name))

    def put_chunks(self, ino: int, chunks: Mapping[int, Chunk]) -> None:
        """Replace chunks of *ino*."""
        if chunks:
            self._content.append(PutChunks(ino, dict(chunks)))

    def drop_chunks(self, ino: int, numbers: tuple[int, ...] | None) -> None:
        """Let chunks of *ino* read as zeros: those numbered, or all (None)."""
        if numbers is None or numbers:
            self._content.append(DropChunks(ino, numbers))

    def change(self, *, grows: bool) -> Change:
        """Return the finished change: inodes before the names that mean them, drops last."""
        puts: list[Op] = []
        drops: list[Op] = []
        for ino, attributes in self._attributes.items():
            if attributes.nlink:
                puts.append(PutInode(ino, attributes))
            else:
                drops.append(DropInode(ino, attributes))
        return Change((*puts, *self._names, *self._content, *drops), grows)


def check_name(name: bytes) -> None:
    """Refuse a name that no directory may hold: ENAMETOOLONG. The kernel has sorted out ``/``, ``.`` and NUL."""
    if len(name) > NAME_MAX:
        raise FsError(errno.ENAMETOOLONG)


def living_directory(tree: Tree, ino: int) -> Directory:
    """Return directory *ino* for putting a name into it; ENOENT if it has itself been removed."""
    directory = tree.directory(ino)
    if tree.inode(ino).is_orphan:
        raise FsError(errno.ENOENT)
    return directory
