"""The operations of which every change of a tree consists. There are six.

Planning produces a :class:`Change`, a store makes it durable, the tree applies it, and hydration replays it.
An operation carries a complete new record, never a difference such as "add one". So applying it twice does no harm.
"""

import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

CHUNK_SIZE = 16384
"""Bytes in a chunk of file content; a constant of the stored format (see docs/format.md)."""

PERMISSIONS = 0o7777
"""The twelve bits of a mode that are not the file's type (:manpage:`inode(7)`)."""

ROOT = 1
"""Inode number of a scope's root directory, as the kernel has it (FUSE_ROOT_ID)."""


class Attributes(NamedTuple):
    """All of an inode except its content and its entries. Immutable: a change replaces all of it.

    Times are nanoseconds since the epoch. ``size`` is in bytes. ``target`` is the target of a symbolic link, as given.
    """

    mode: int
    nlink: int
    uid: int
    gid: int
    rdev: int
    size: int
    atime_ns: int
    mtime_ns: int
    ctime_ns: int
    target: bytes = b""
    xattrs: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def is_directory(self) -> bool:
        """Whether this is a directory."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_regular(self) -> bool:
        """Whether this is a regular file, the only kind that has content."""
        return stat.S_ISREG(self.mode)


class PutInode(NamedTuple):
    """Create inode *ino*, or replace its attributes."""

    ino: int
    attributes: Attributes


class DropInode(NamedTuple):
    """Remove inode *ino*, which has lost its last link, and its content.

    *attributes* are what a descriptor that is still open continues to see. They are not stored.
    """

    ino: int
    attributes: Attributes


class PutEntry(NamedTuple):
    """Make *name* in directory *parent* an entry for inode *ino*.

    *cookie* is its position in listings. A new name gets a cookie that the directory has never used.
    """

    parent: int
    name: bytes
    ino: int
    cookie: int


class DropEntry(NamedTuple):
    """Remove *name* from directory *parent*."""

    parent: int
    name: bytes


Chunk: TypeAlias = bytes | memoryview
"""Content of one chunk. In a planned change it may be a view of the buffer that the request came in."""


class PutChunks(NamedTuple):
    """Replace *chunks* of file *ino*, by number. A chunk shorter than :data:`CHUNK_SIZE` is followed by zeros.

    *replaced* is how many of them the file had before, as far as the planner says: 0 if it does not. A store may use it
    to notice that it has lost content.
    """

    ino: int
    chunks: Mapping[int, Chunk]
    replaced: int = 0


class DropChunks(NamedTuple):
    """Remove chunks of file *ino*: they read as zeros. *numbers* None means all of them."""

    ino: int
    numbers: tuple[int, ...] | None


Op: TypeAlias = PutInode | DropInode | PutEntry | DropEntry | PutChunks | DropChunks


class Change(NamedTuple):
    """What one mutation does: all of *ops*, or nothing.

    *grows* says that the scope needs more room afterwards. A full store refuses a change that grows, and no other.
    """

    ops: tuple[Op, ...]
    grows: bool


def content_size(changes: Iterable[Change]) -> int:
    """Return how many bytes of content *changes* carry."""
    size = 0
    for change in changes:
        for op in change.ops:
            if isinstance(op, PutChunks):
                size += sum(map(len, op.chunks.values()))
    return size


def copy_views(changes: Iterable[Change]) -> Iterator[None]:
    """Replace the views among the chunks of *changes* by bytes, one chunk at each step of the iterator.

    A view would keep the complete buffer of its request in memory. Copying takes as long as a store on the same host
    takes to answer. So a store may take these steps while it waits for its answer. :meth:`vfsd.tree.tree.Tree.apply`
    copies the chunks that are left.
    """
    for change in changes:
        for op in change.ops:
            if isinstance(op, PutChunks):
                yield from _copy_views(op.chunks)


def _copy_views(chunks: Mapping[int, Chunk]) -> Iterator[None]:
    for number, chunk in chunks.items():
        if isinstance(chunk, memoryview):
            assert isinstance(chunks, dict), "only planning makes views, and it puts them into a dict"
            chunks[number] = bytes(chunk)
            yield


class Limits(NamedTuple):
    """How much a scope may hold: bytes of content, files of all kinds, bytes in one file. None or 0 means no limit."""

    max_bytes: int | None = None
    max_files: int | None = None
    max_file_bytes: int | None = None

    def changed_by(self, other: "Limits") -> "Limits":
        """Return these limits, with those replaced that are not None in *other*."""
        return Limits(*(present if new is None else new for present, new in zip(self, other, strict=True)))
