"""A small tree to plan changes of, and pictures of trees to compare. Most tests of the tree use them.

Every call of a :class:`PlannedTree` happens a second after the one before, so that a time tells which call set it.
"""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from vfsd.errors import FsError
from vfsd.tree.change import ROOT, Attributes, Change, PutInode
from vfsd.tree.chunks import read_chunks
from vfsd.tree.plan_attributes import NewAttributes, plan_removexattr, plan_setattr, plan_setxattr
from vfsd.tree.plan_content import plan_write
from vfsd.tree.plan_names import (
    EntryKey,
    NewInode,
    Whiteout,
    plan_create,
    plan_link,
    plan_rename,
    plan_rmdir,
    plan_unlink,
)
from vfsd.tree.tree import Tree

SECOND = 1_000_000_000
BEGINNING = 1_700_000_000 * SECOND
FILE = stat.S_IFREG | 0o644
DIRECTORY = stat.S_IFDIR | 0o755
SYMLINK = stat.S_IFLNK | 0o777
FIFO = stat.S_IFIFO | 0o600
UID, GID = 1001, 1002


def new_tree() -> Tree:
    """Return a tree that holds an empty root directory, made at :data:`BEGINNING`."""
    tree = Tree()
    root = Attributes(DIRECTORY, 2, 0, 0, 0, 0, BEGINNING, BEGINNING, BEGINNING)
    tree.replay([PutInode(ROOT, root)])
    return tree


class PlannedTree:
    """A tree, and every planner as a plain call: what was planned is applied at once."""

    def __init__(self) -> None:
        self.tree = new_tree()
        self.now = BEGINNING
        self.changes: list[Change] = []

    def __getitem__(self, ino: int) -> Attributes:
        return self.tree.inode(ino).attributes

    def _tick(self) -> int:
        self.now += SECOND
        return self.now

    def _take(self, change: Change) -> Change:
        self.changes.append(change)
        self.tree.apply(change)
        return change

    def create(self, name: bytes, parent: int = ROOT, new: NewInode = NewInode(FILE, UID, GID)) -> int:  # noqa: B008 (immutable)
        ino = self.tree.allocate()
        self._take(plan_create(self.tree, EntryKey(parent, name), ino, new, self._tick()))
        return ino

    def mkdir(self, name: bytes, parent: int = ROOT, mode: int = DIRECTORY) -> int:
        return self.create(name, parent, NewInode(mode, UID, GID))

    def link(self, ino: int, name: bytes, parent: int = ROOT) -> Change:
        return self._take(plan_link(self.tree, ino, EntryKey(parent, name), self._tick()))

    def unlink(self, name: bytes, parent: int = ROOT) -> Change:
        return self._take(plan_unlink(self.tree, EntryKey(parent, name), self._tick()))

    def rmdir(self, name: bytes, parent: int = ROOT) -> Change:
        return self._take(plan_rmdir(self.tree, EntryKey(parent, name), self._tick()))

    def rename(
        self, source: tuple[int, bytes], target: tuple[int, bytes], flags: int = 0, whiteout: Whiteout | None = None
    ) -> Change:
        return self._take(plan_rename(self.tree, EntryKey(*source), EntryKey(*target), flags, self._tick(), whiteout))

    def write(self, ino: int, offset: int, data: bytes) -> Change:
        return self._take(plan_write(self.tree, ino, offset, data, self._tick()))

    def setattr(self, ino: int, **fields: int) -> Change:
        return self._take(plan_setattr(self.tree, ino, NewAttributes(**fields), self._tick()))

    def setxattr(self, ino: int, name: bytes, value: bytes) -> Change:
        return self._take(plan_setxattr(self.tree, ino, name, value, self._tick()))

    def removexattr(self, ino: int, name: bytes) -> Change:
        return self._take(plan_removexattr(self.tree, ino, name, self._tick()))

    def open(self, ino: int) -> None:
        """Give the kernel a reference to *ino*, so that it outlives its last name."""
        self.tree.inode(ino).lookups += 1

    def forget(self, ino: int) -> None:
        self.tree.inode(ino).lookups -= 1
        self.tree.discard_if_unused(ino)

    def listing(self, ino: int = ROOT) -> dict[bytes, int]:
        """Return names and inode numbers, in the order of a listing."""
        return {name: entry.ino for name, entry in self.tree.directory(ino).entries.items()}

    def read(self, ino: int) -> bytes:
        """Return all content of *ino*."""
        return content_of(self.tree, ino)

    def touched(self, ino: int) -> tuple[bool, bool]:
        """Return whether the last call set the modification time of *ino*, and whether it set its change time."""
        return self[ino].mtime_ns == self.now, self[ino].ctime_ns == self.now

    @contextmanager
    def refuses(self, number: int) -> Iterator[None]:
        """Expect errno *number* from the block, and the tree as it was."""
        before = picture(self.tree)
        with pytest.raises(FsError) as caught:
            yield
        assert caught.value.errno == number
        assert picture(self.tree) == before


def content_of(tree: Tree, ino: int) -> bytes:
    """Return all bytes of file *ino*."""
    inode = tree.inode(ino)
    return read_chunks(inode.chunks, inode.attributes.size, 0, inode.attributes.size)


class Pictured(NamedTuple):
    """All that an inode is. *entries* keep their order; *parent* and *next_cookie* are a directory's."""

    attributes: Attributes
    chunks: dict[int, bytes]
    entries: tuple[Any, ...]
    parent: int | None
    next_cookie: int | None
    lookups: int
    shown: bool


def picture(tree: Tree) -> dict[int, Pictured]:
    """Return everything a tree holds, as values that stay when the tree changes."""
    pictures = {}
    for ino, inode in tree.inodes.items():
        directory = inode.directory
        pictures[ino] = Pictured(
            attributes=inode.attributes,
            chunks=dict(inode.chunks),
            entries=() if directory is None else tuple(directory.entries.items()),
            parent=None if directory is None else directory.parent,
            next_cookie=None if directory is None else directory.next_cookie,
            lookups=inode.lookups,
            shown=inode.shown,
        )
    return pictures
