"""The vocabulary of changes: everything that can happen to a tree is a tuple of these six operations.

Planning produces a :class:`Change`, a store makes it durable, the tree applies it, hydration replays it.
Operations are values: they carry whole new records, never "add one", so that applying one twice is harmless.
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
    """All of an inode but its content and entries. Immutable: a change replaces it whole.

    Times are nanoseconds since the epoch; ``size`` is bytes; ``target`` is a symbolic link's, as given.
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
    """Create the inode, or give it new attributes."""

    ino: int
    attributes: Attributes


class DropInode(NamedTuple):
    """The last link of the inode is gone, and its content with it.

    *attributes* are what a descriptor that is still open goes on seeing; they are not stored.
    """

    ino: int
    attributes: Attributes


class PutEntry(NamedTuple):
    """Let *name* in directory *parent* mean inode *ino*. *cookie* is its place in a listing, never used before."""

    parent: int
    name: bytes
    ino: int
    cookie: int


class DropEntry(NamedTuple):
    """Remove *name* from directory *parent*."""

    parent: int
    name: bytes


Chunk: TypeAlias = bytes | memoryview
"""Content of one chunk; in a planned change it may be a view of the buffer it came in."""


class PutChunks(NamedTuple):
    """Replace whole chunks, by number. A chunk shorter than the chunk size is followed by zeros."""

    ino: int
    chunks: Mapping[int, Chunk]


class DropChunks(NamedTuple):
    """Let chunks read as zeros; *numbers* None means all of them."""

    ino: int
    numbers: tuple[int, ...] | None


Op: TypeAlias = PutInode | DropInode | PutEntry | DropEntry | PutChunks | DropChunks


class Change(NamedTuple):
    """What one mutation does, all or nothing.

    *grows* says that the scope needs more room afterwards: a full store refuses such a change, and only such.
    """

    ops: tuple[Op, ...]
    grows: bool


def content_size(changes: Iterable[Change]) -> int:
    """Return the bytes of content that *changes* carry."""
    size = 0
    for change in changes:
        for op in change.ops:
            if isinstance(op, PutChunks):
                size += sum(map(len, op.chunks.values()))
    return size


def own(changes: Iterable[Change]) -> Iterator[None]:
    """Let the chunks of *changes* be bytes of their own, one at each step: a view would hold all it is part of.

    Copying costs as much as a store on the same host takes. So a store may take these steps while it waits for its
    answer; what it leaves is done when the change is applied.
    """
    for change in changes:
        for op in change.ops:
            if isinstance(op, PutChunks):
                yield from _own(op.chunks)


def _own(chunks: Mapping[int, Chunk]) -> Iterator[None]:
    for number, chunk in chunks.items():
        if isinstance(chunk, memoryview):
            assert isinstance(chunks, dict), "views come from planning, which makes a dict of them"
            chunks[number] = bytes(chunk)
            yield


class Limits(NamedTuple):
    """How much a scope may hold: bytes of content, files of all kinds, bytes in one file. None or 0 is no limit."""

    max_bytes: int | None = None
    max_files: int | None = None
    max_file_bytes: int | None = None

    def changed_by(self, other: "Limits") -> "Limits":
        """Return these limits, but for those that *other* names."""
        return Limits(*(mine if given is None else given for mine, given in zip(self, other, strict=True)))
