"""What memory holds of a file: its attributes, and the entries or chunks behind them.

Plain data without locks. Attributes, entries and chunks change only when :class:`vfsd.tree.tree.Tree` applies a change.
Two notes are no part of a change: ``lookups`` is the kernel's lookup count, and only :mod:`vfsd.fuse` writes it, beside
the reply that the kernel counts; ``shown`` is set by whoever lets a reader see the modification time.
"""

from collections.abc import Iterator
from typing import NamedTuple

from vfsd.tree.change import Attributes

MILLISECOND = 1_000_000
"""Nanoseconds in a millisecond, the unit in which many programs compare times."""

FIRST_COOKIE = 3
"""Cookies 1 and 2 stand for ``.`` and ``..`` in a listing."""


def look_alike(one_ns: int, other_ns: int) -> bool:
    """Return whether a program that compares milliseconds may take two times for the same.

    Most programs cut a time off to its millisecond; Node's ``Stats.mtime`` rounds it. Both count.
    """
    half = MILLISECOND // 2
    cut_off = one_ns // MILLISECOND == other_ns // MILLISECOND
    return cut_off or (one_ns + half) // MILLISECOND == (other_ns + half) // MILLISECOND


class Entry(NamedTuple):
    """One name in a directory: the inode it means, and its place in listings."""

    ino: int
    cookie: int


class Directory:
    """The entries of a directory, in the order of their cookies, which only grow.

    A listing continues with "entries that have a greater cookie", so names that come or go meanwhile disturb no
    listing. ``as_parents`` is the ``parents`` tuple of every inode whose only name is here: shared, to save memory.
    """

    __slots__ = ("as_parents", "entries", "next_cookie", "parent")

    def __init__(self, ino: int) -> None:
        self.parent = ino
        self.as_parents = (ino,)
        self.entries: dict[bytes, Entry] = {}
        self.next_cookie = FIRST_COOKIE

    def put(self, name: bytes, entry: Entry) -> None:
        """Set *name*. A new name has the highest cookie and goes last; a present one keeps its cookie."""
        self.entries[name] = entry
        self.next_cookie = max(self.next_cookie, entry.cookie + 1)

    def drop(self, name: bytes) -> None:
        """Remove *name*, if it is there."""
        self.entries.pop(name, None)

    def newer_than(self, cookie: int) -> Iterator[tuple[bytes, Entry]]:
        """Yield the entries made after *cookie*, newest first. The cost grows with their number only."""
        for name in reversed(self.entries):
            entry = self.entries[name]
            if entry.cookie <= cookie:
                return
            yield name, entry


class Inode:
    """A file of any kind in memory.

    ``chunks`` is content by chunk number (regular files), ``directory`` the entries (directories). ``lookups`` is the
    kernel's lookup count; an inode without links lives until the count is zero. ``shown`` says that somebody has seen
    the present modification time, or one that looks like it. ``parents`` are the directories that hold a name of it,
    one for each name; a directory has ``directory.parent`` instead.
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
        """Whether it has no name left: it lives in memory alone, for those who have it open."""
        return self.attributes.nlink == 0
