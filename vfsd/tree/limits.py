"""Checks of a change against the limits of a scope, made after planning and before anything is sent to the store.

Only a change that grows is refused: deleting, truncating and renaming work in a full scope.
"""

import errno
from collections.abc import Mapping

from vfsd.errors import FsError
from vfsd.tree.change import Change, DropChunks, Limits, PutChunks, PutInode
from vfsd.tree.tree import Tree

_NONE: frozenset[int] = frozenset()


def check_limits(
    tree: Tree,
    change: Change,
    limits: Limits,
    under_way: tuple[int, int] = (0, 0),
    newly_stored: frozenset[int] = _NONE,
) -> None:
    """Refuse *change* if it would exceed *limits*. Errors: EFBIG (one file), ENOSPC (number of files, total bytes).

    *under_way* are bytes and files to count in addition to those of the tree; they may be negative. The inodes
    *newly_stored* are new to the scope although the tree has them.
    """
    if not change.grows:
        return
    if limits.max_file_bytes:
        _check_file_sizes(tree, change, limits.max_file_bytes, newly_stored)
    if limits.max_files:
        new = new_files(tree, change, newly_stored)
        if new and len(tree.inodes) + under_way[1] + new > limits.max_files:
            raise FsError(errno.ENOSPC)
    if limits.max_bytes:
        added = growth(tree, change, newly_stored)
        if added > 0 and tree.content_bytes + under_way[0] + added > limits.max_bytes:
            raise FsError(errno.ENOSPC)


def _check_file_sizes(tree: Tree, change: Change, max_file_bytes: int, newly_stored: frozenset[int]) -> None:
    for op in change.ops:
        if isinstance(op, PutInode) and op.attributes.is_regular and op.attributes.size > max_file_bytes:
            present = tree.inodes.get(op.ino)
            if present is None or op.ino in newly_stored or op.attributes.size > present.attributes.size:
                raise FsError(errno.EFBIG)


def new_files(tree: Tree, change: Change, newly_stored: frozenset[int] = _NONE) -> int:
    """Return how many files of all kinds *change* adds: inodes that are not in *tree*, and those *newly_stored*."""
    return sum(isinstance(op, PutInode) and (op.ino not in tree.inodes or op.ino in newly_stored) for op in change.ops)


def growth(tree: Tree, change: Change, newly_stored: frozenset[int] = _NONE) -> int:
    """Return by how many bytes *change* makes the content of *tree* larger. Negative if it makes it smaller.

    For the inodes *newly_stored* all content in the change counts, because the scope has none of it yet.
    """
    size = 0
    for op in change.ops:
        match op:
            case PutChunks():
                chunks = _chunks(tree, op.ino, newly_stored)
                size += sum(len(chunk) - len(chunks.get(number, b"")) for number, chunk in op.chunks.items())
            case DropChunks():
                chunks = _chunks(tree, op.ino, newly_stored)
                numbers = tuple(chunks) if op.numbers is None else op.numbers
                size -= sum(len(chunks.get(number, b"")) for number in numbers)
            case _:
                pass
    return size


def _chunks(tree: Tree, ino: int, newly_stored: frozenset[int]) -> Mapping[int, bytes]:
    """Return the chunks that the scope has of *ino*: none if the change adds it."""
    inode = tree.inodes.get(ino)
    return {} if inode is None or ino in newly_stored else inode.chunks
