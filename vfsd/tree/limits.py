"""Whether a change fits into what a scope may hold. Pure: asked after planning, before anything is sent.

Only what grows is refused: deleting, truncating and renaming work in a scope that is full.
"""

import errno
from collections.abc import Mapping

from vfsd.errors import FsError
from vfsd.tree.change import Change, DropChunks, Limits, PutChunks, PutInode
from vfsd.tree.tree import Tree

_NONE: frozenset[int] = frozenset()


def check_limits(
    tree: Tree, change: Change, limits: Limits, under_way: tuple[int, int] = (0, 0), fresh: frozenset[int] = _NONE
) -> None:
    """Refuse *change* if it would exceed *limits*. Errors: EFBIG (one file), ENOSPC (files, bytes in all).

    *under_way* are the bytes and the files to be counted beside those of the tree. The inodes *fresh* are new to the
    scope although the tree has them.
    """
    if not change.grows:
        return
    if limits.max_file_bytes:
        _check_file_sizes(tree, change, limits.max_file_bytes, fresh)
    if limits.max_files:
        new = new_files(tree, change, fresh)
        if new and len(tree.inodes) + under_way[1] + new > limits.max_files:
            raise FsError(errno.ENOSPC)
    if limits.max_bytes:
        more = growth(tree, change, fresh)
        if more > 0 and tree.content_bytes + under_way[0] + more > limits.max_bytes:
            raise FsError(errno.ENOSPC)


def _check_file_sizes(tree: Tree, change: Change, most: int, fresh: frozenset[int]) -> None:
    for op in change.ops:
        if isinstance(op, PutInode) and op.attributes.is_regular and op.attributes.size > most:
            present = tree.inodes.get(op.ino)
            if present is None or op.ino in fresh or op.attributes.size > present.attributes.size:
                raise FsError(errno.EFBIG)


def new_files(tree: Tree, change: Change, fresh: frozenset[int] = _NONE) -> int:
    """Return how many files of all kinds *change* brings in that *tree* has not, or the scope has not (*fresh*)."""
    return sum(isinstance(op, PutInode) and (op.ino not in tree.inodes or op.ino in fresh) for op in change.ops)


def growth(tree: Tree, change: Change, fresh: frozenset[int] = _NONE) -> int:
    """Return by how many bytes of content *change* makes *tree* larger; negative if it makes it smaller.

    Of the inodes *fresh* all content that the change has counts.
    """
    total = 0
    for op in change.ops:
        match op:
            case PutChunks():
                chunks = _chunks(tree, op.ino, fresh)
                total += sum(len(chunk) - len(chunks.get(number, b"")) for number, chunk in op.chunks.items())
            case DropChunks():
                chunks = _chunks(tree, op.ino, fresh)
                numbers = tuple(chunks) if op.numbers is None else op.numbers
                total -= sum(len(chunks.get(number, b"")) for number in numbers)
            case _:
                pass
    return total


def _chunks(tree: Tree, ino: int, fresh: frozenset[int]) -> Mapping[int, bytes]:
    """Return the chunks of *ino*: none, if the change brings it in."""
    inode = tree.inodes.get(ino)
    return {} if inode is None or ino in fresh else inode.chunks
