"""Listing a directory, at any depth, as it was at one moment, although the tree changes while it is listed.

A listing of a million files takes more than a second, and the mount must not wait for that. So a listing is made a few
entries at a time. While it is under way, a hook of the pipeline keeps what changes replace: each entry and the
attributes of each inode as they were when the listing began. This costs nothing while there is no listing.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import NamedTuple

from vfsd.errors import FsError
from vfsd.files.names import DirectoryNames
from vfsd.files.resolve import PATH_MAX
from vfsd.scope.hooks import Effects, Hook
from vfsd.tree.change import Attributes, DropEntry, DropInode, PutEntry, PutInode
from vfsd.tree.inode import Entry, Inode
from vfsd.tree.tree import Tree, look_alike


class Listed(NamedTuple):
    """An entry: its path relative to the listed directory, its inode number, and the attributes of that inode."""

    path: bytes
    ino: int
    attributes: Attributes


class Listings(Hook):
    """The listings of *tree* that are under way."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._under_way: list[_Past] = []

    @contextmanager
    def listing(self, directory: Inode, *, recursive: bool) -> Iterator[Iterator[Listed | None]]:
        """Begin a listing of *directory*, if *recursive* at any depth. Yield its entries, sorted by path.

        The tree may change between any two of them. None among them means that some time has passed. Symbolic links
        are not followed. What lies so deep that its path has more than :data:`PATH_MAX` bytes is left out: no request
        could name it. Errors: ENOTDIR.
        """
        if directory.directory is None:
            raise FsError(errno.ENOTDIR)
        past = _Past(self._tree)
        self._under_way.append(past)
        self.active = True
        try:
            yield past.below(directory.ino, recursive=recursive)
        finally:
            self._under_way.remove(past)
            self.active = bool(self._under_way)

    def applying(self, effects: Effects) -> None:
        """Keep what *effects* replace."""
        for past in self._under_way:
            past.keep(effects)


class _Past:
    """The tree as it was when this was made. It has the first of all values that were replaced since."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._entries: dict[int, dict[bytes, Entry | None]] = {}
        """By directory and name. None: there was no such entry."""
        self._attributes: dict[int, Attributes] = {}
        self._taking: dict[int, DirectoryNames] = {}
        """By directory: the names that are being taken from it."""

    def keep(self, effects: Effects) -> None:
        """Keep what *effects* are about to replace."""
        for op in effects.memory.ops:
            match op:
                case PutEntry() | DropEntry():
                    if op.parent in self._taking:
                        self._taking.pop(op.parent).finish_taking()
                    kept = self._entries.setdefault(op.parent, {})
                    kept.setdefault(op.name, self._present(op.parent, op.name))
                case PutInode() | DropInode():
                    if op.ino in self._tree.inodes:
                        self._attributes.setdefault(op.ino, self._tree.inodes[op.ino].attributes)
                case _:
                    pass

    def _present(self, directory: int, name: bytes) -> Entry | None:
        """Return the entry that the tree has; None also if the directory is new in the same change, or gone."""
        inode = self._tree.inodes.get(directory)
        return None if inode is None or inode.directory is None else inode.directory.entries.get(name)

    def below(self, top: int, *, recursive: bool) -> Iterator[Listed | None]:
        """Yield the entries of directory *top* and what is below, sorted by path. None: nothing, but time has passed.

        A directory is yielded under its name. What it contains comes where its name and a slash would be sorted.
        """
        levels = [_Level(b"", top, self._names(top))]
        while levels:
            level = levels[-1]
            if level.is_directory_next:
                key, ino = heappop(level.directories)
                levels.append(_Level(level.prefix + key, ino, self._names(ino)))
            elif level.name is None:
                levels.pop()
            else:
                listed = self._listed(level)
                if recursive and listed is not None and listed.attributes.is_directory:
                    heappush(level.directories, (level.name + b"/", listed.ino))
                yield listed
                yield from level.advance()

    def _listed(self, level: "_Level") -> Listed | None:
        """Return the next entry of *level*, or None if it is too deep or was not there."""
        assert level.name is not None, "there is a next entry"
        entry = self._entry(level.directory, level.name)
        path = level.prefix + level.name
        return None if entry is None or len(path) > PATH_MAX else Listed(path, entry.ino, self._inode(entry.ino))

    def _entry(self, directory: int, name: bytes) -> Entry | None:
        kept = self._entries.get(directory)
        return kept[name] if kept is not None and name in kept else self._present(directory, name)

    def _inode(self, ino: int) -> Attributes:
        """Return the attributes of an inode.

        A reader of the listing must notice a change of the file if he looks again. So if the time has changed and the
        new one looks like the old one, he gets the present attributes.
        """
        kept, inode = self._attributes.get(ino), self._tree.inodes.get(ino)
        if kept is None:
            return self._tree.inodes[ino].attributes
        if inode is None or inode.attributes.mtime_ns == kept.mtime_ns:
            return kept
        return inode.attributes if look_alike(kept.mtime_ns, inode.attributes.mtime_ns) else kept

    def _names(self, directory: int) -> Iterator[bytes | None]:
        """Yield the names in *directory*, sorted, and perhaps others. None: nothing, but time has passed."""
        inode = self._tree.inodes.get(directory)
        present = {} if inode is None or inode.directory is None else inode.directory.entries
        names = DirectoryNames(present, [name for name in self._entries.get(directory, ()) if name not in present])
        self._taking[directory] = names
        yield from names.sorted()
        self._taking.pop(directory, None)


class _Level:
    """A directory that is being listed: the *prefix* of its paths, its inode number, and its *names*, sorted.

    ``name`` is the next of them; None if there is no more. ``directories`` are the directories among the names so far
    that are still to be listed, by name and slash.
    """

    def __init__(self, prefix: bytes, directory: int, names: Iterator[bytes | None]) -> None:
        self.prefix = prefix
        self.directory = directory
        self.directories: list[tuple[bytes, int]] = []
        self.name: bytes | None = b""  # no entry has this name: so the first step goes to the first name
        self._names = names

    @property
    def is_directory_next(self) -> bool:
        """Whether what a directory contains comes before the next name."""
        return bool(self.directories) and (self.name is None or self.directories[0][0] < self.name)

    def advance(self) -> Iterator[None]:
        """Go to the next name. Yield whenever time has passed."""
        for name in self._names:
            if name is not None:
                self.name = name
                return
            yield None
        self.name = None
