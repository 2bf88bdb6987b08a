"""Times that programs compare in milliseconds: which times of a change could be taken for times that were seen.

Frameworks look for skills in this way: they keep what they have read while the modification time, cut off or rounded to
milliseconds, stays the same. Waiting everywhere for the next millisecond would make every write many times slower; so
whoever calls this says which inodes are compared so.
"""

from collections.abc import Callable, Iterator

from vfsd.tree.change import Attributes, Change, PutEntry, PutInode
from vfsd.tree.inode import Inode
from vfsd.tree.tree import Tree, look_alike, next_different


def distinct_from(tree: Tree, change: Change, is_compared: Callable[[Inode], bool]) -> int:
    """Return the time (ns) from which *change* gives no inode a time that looks like one that was seen. 0: already."""
    from_ns = 0
    for inode, new in modified(tree, change):
        seen_ns = inode.attributes.mtime_ns
        if inode.shown and look_alike(new.mtime_ns, seen_ns) and is_compared(inode):
            from_ns = max(from_ns, next_different(seen_ns))
    return from_ns


def modified(tree: Tree, change: Change) -> Iterator[tuple[Inode, Attributes]]:
    """Yield each inode that *change* modifies, or whose name it gives to a new inode, with the attributes seen next.

    A time that somebody has asked for does not count: it must be as it was asked for.
    """
    planned = {op.ino: op.attributes for op in change.ops if isinstance(op, PutInode)}
    for ino, attributes in planned.items():
        inode = tree.inodes.get(ino)
        if inode is not None and _is_modified(inode, attributes):
            yield inode, attributes
    for op in change.ops:
        if isinstance(op, PutEntry) and op.ino not in tree.inodes and op.parent in tree.inodes:
            replaced = tree.child(op.parent, op.name)
            if replaced is not None:
                yield replaced, planned[op.ino]


def _is_modified(inode: Inode, new: Attributes) -> bool:
    return new.mtime_ns == new.ctime_ns and new.mtime_ns != inode.attributes.mtime_ns
