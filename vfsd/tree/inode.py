"""What memory holds of a file of any kind: its attributes, and its entries or chunks.

Plain data without locks. Attributes, entries and chunks change only when :class:`vfsd.tree.tree.Tree` applies a change.
Two fields are not part of any change:

* ``lookups``, the kernel's lookup count. It grows where :mod:`vfsd.fuse` builds the reply that the kernel counts.
  :meth:`vfsd.scope.volume.Volume.forget` lowers it. When a virtual directory becomes real,
  :class:`vfsd.seeds.root_references.RootReferences` hands its count over.
* ``shown``. Code that shows a modification time to a reader sets it. ``Tree`` clears it when the next time looks
  different.
"""

from collections.abc import Iterator
from typing import NamedTuple

from vfsd.tree.change import Attributes

FIRST_COOKIE = 3
"""The first cookie of an entry. In a listing cookies 1 and 2 stand for ``.`` and ``..``."""


class Entry(NamedTuple):
    """What a directory has under one name: the inode number, and the position in listings."""

    ino: int
    cookie: int


class Directory:
    """The entries of a directory, in the order of their cookies, which only grow.

    A listing continues with the entries that have a greater cookie. So names that are added or removed meanwhile do not
    disturb it. ``as_parents`` is the ``parents`` tuple of every inode whose only name is here: they share it, to save
    memory.
    """

    __slots__ = ("as_parents", "entries", "next_cookie", "parent")

    def __init__(self, ino: int) -> None:
        self.parent = ino
        self.as_parents = (ino,)
        self.entries: dict[bytes, Entry] = {}
        self.next_cookie = FIRST_COOKIE

    def put(self, name: bytes, entry: Entry) -> None:
        """Set *name*. A new name comes last and must have the highest cookie. A name that exists keeps its cookie."""
        self.entries[name] = entry
        self.next_cookie = max(self.next_cookie, entry.cookie + 1)

    def drop(self, name: bytes) -> None:
        """Remove *name*, if it is there."""
        self.entries.pop(name, None)

    def newer_than(self, cookie: int) -> Iterator[tuple[bytes, Entry]]:
        """Yield the entries with a cookie greater than *cookie*, newest first. The cost grows with their number."""
        for name in reversed(self.entries):
            entry = self.entries[name]
            if entry.cookie <= cookie:
                return
            yield name, entry


class Inode:
    """A file of any kind in memory.

    ``chunks`` is the content of a regular file, by chunk number. ``directory`` is what a directory contains.
    ``lookups`` is the kernel's lookup count: an inode without links is kept until the count is zero. ``shown`` says
    that somebody has seen the present modification time, or one that looks like it. ``parents`` are the directories
    that hold a name of the inode, each once. A directory has ``directory.parent`` instead.

    Nearly every inode has one name: its ``parents`` are a tuple that all such inodes of the directory share. An inode
    with more names has a dict from directory to the number of names there, so one more name costs the same however
    many there are.
    """

    __slots__ = ("attributes", "chunks", "directory", "ino", "lookups", "parents", "shown")

    def __init__(self, ino: int, attributes: Attributes) -> None:
        self.ino = ino
        self.attributes = attributes
        self.lookups = 0
        self.shown = False
        self.parents: tuple[int, ...] | dict[int, int] = ()
        self.directory = Directory(ino) if attributes.is_directory else None
        self.chunks: dict[int, bytes] = {}

    @property
    def is_orphan(self) -> bool:
        """Whether it has no name left. Only memory has it then, because somebody has it open."""
        return self.attributes.nlink == 0
