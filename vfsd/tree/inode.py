"""What memory holds of a file: its attributes, and the entries or the chunks behind them.

Plain data with no locking: only :class:`vfsd.tree.tree.Tree` changes it, and only by applying a change.
"""

from collections.abc import Iterator
from typing import NamedTuple

from vfsd.tree.change import Attributes

FIRST_COOKIE = 3
"""Cookies 1 and 2 stand for ``.`` and ``..`` in a listing."""


class Entry(NamedTuple):
    """One name in a directory: the inode it means, and its place in listings."""

    ino: int
    cookie: int


class Directory:
    """The entries of a directory, in the order of their cookies, which only grow.

    A listing is "entries with a cookie greater than": names that come or go meanwhile disturb nobody's place.
    ``only`` is the ``parents`` of every inode that has its one name here: shared, for files are many.
    """

    __slots__ = ("entries", "next_cookie", "only", "parent")

    def __init__(self, ino: int) -> None:
        self.parent = ino
        self.only = (ino,)
        self.entries: dict[bytes, Entry] = {}
        self.next_cookie = FIRST_COOKIE

    def put(self, name: bytes, entry: Entry) -> None:
        """Set *name*: a new one has the highest cookie and goes last, a present one keeps cookie and place."""
        self.entries[name] = entry
        self.next_cookie = max(self.next_cookie, entry.cookie + 1)

    def drop(self, name: bytes) -> None:
        """Remove *name*, if it is there."""
        self.entries.pop(name, None)

    def newer_than(self, cookie: int) -> Iterator[tuple[bytes, Entry]]:
        """Yield, newest first, the entries made after *cookie*; the cost is their number."""
        for name in reversed(self.entries):
            entry = self.entries[name]
            if entry.cookie <= cookie:
                return
            yield name, entry


class Inode:
    """A file of any kind in memory.

    ``chunks`` is content by chunk number (regular files), ``directory`` the entries (directories). ``lookups``
    is the kernel's lookup count; an inode without links lives until it is zero. ``shown`` says that someone
    has seen the present modification time, or one that looks like it. ``parents`` are the directories that have
    names for it, one for each name, unless it is a directory itself: that has ``directory.parent``.
    """

    __slots__ = ("attributes", "chunks", "directory", "ino", "lookups", "parents", "shown")

    def __init__(self, ino: int, attributes: Attributes) -> None:
        self.ino = ino
        self.attributes = attributes
        self.lookups = 0
        self.shown = False
        self.parents: tuple[int, ...] = ()
        self.directory = Directory(ino) if attributes.is_directory else None
        self.chunks: dict[int, bytes] = {}

    @property
    def is_orphan(self) -> bool:
        """Whether no name leads here any more: it lives in memory alone, for whoever has it open."""
        return self.attributes.nlink == 0
