"""Planning what happens to files as a whole: new content in one step, new branches of directories, whole subtrees gone.

The kernel never asks for any of this; the control socket does. Sources: :manpage:`open(2)`, :manpage:`mkdir(2)`,
:manpage:`rmdir(2)`, and for a directory within a new one the same rules as for any other.
"""

import errno
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vfsd.errors import FsError
from vfsd.tree.change import Attributes, Change
from vfsd.tree.chunks import write_chunks
from vfsd.tree.draft import Draft, check_name
from vfsd.tree.plan_names import EntryKey, NewInode, check_free, first_attributes
from vfsd.tree.tree import Tree


class FileContent(NamedTuple):
    """All that a regular file contains: its size in bytes, and the chunks that are not all zeros."""

    size: int = 0
    chunks: Mapping[int, bytes] = {}

    @classmethod
    def of(cls, data: bytes) -> "FileContent":
        """Return the content that consists of *data*."""
        return cls(len(data), {number: bytes(chunk) for number, chunk in write_chunks({}, 0, data).items() if chunk})


class NewEntry(NamedTuple):
    """An inode to be made under *name*, with a number that was never used."""

    name: bytes
    ino: int
    new: NewInode


def plan_replace(tree: Tree, ino: int, whole: FileContent, now_ns: int) -> Change:
    """Plan that file *ino* contains *whole* and nothing else. Errors: EINVAL (no regular file), ESTALE."""
    draft = Draft(tree, now_ns)
    if not draft.attributes(ino).is_regular:
        raise FsError(errno.EINVAL)
    present = tree.inode(ino).chunks
    draft.modify(ino, size=whole.size)
    draft.put_chunks(ino, {number: chunk for number, chunk in whole.chunks.items() if present.get(number) != chunk})
    draft.drop_chunks(ino, tuple(number for number in present if number not in whole.chunks) if whole.size else None)
    return draft.change(grows=whole.size > 0)


def plan_create_path(tree: Tree, parent: int, branch: Sequence[NewEntry], whole: FileContent, now_ns: int) -> Change:
    """Plan the inodes of *branch*, the first in *parent*, each further one in the one before.

    *whole* is what the last contains, if it is a regular file. Errors: EEXIST, ENAMETOOLONG, ENOENT, ENOTDIR, ESTALE.
    """
    check_free(tree, EntryKey(parent, branch[0].name))
    draft = Draft(tree, now_ns)
    draft.modify(parent)
    holder = parent
    for sprout in branch:
        check_name(sprout.name)
        attributes = first_attributes(draft.attributes(holder), sprout.new, now_ns)
        if attributes.is_directory:
            draft.count_link(holder, +1)
        draft.add(sprout.ino, _filled(attributes, whole))
        draft.put_entry(holder, sprout.name, sprout.ino)
        holder = sprout.ino
    draft.put_chunks(holder, whole.chunks)
    return draft.change(grows=True)


def _filled(attributes: Attributes, whole: FileContent) -> Attributes:
    return attributes._replace(size=whole.size) if attributes.is_regular else attributes


def plan_remove(tree: Tree, keys: Sequence[EntryKey], now_ns: int) -> Change:
    """Plan the end of all *places*, whatever they are; what lies in a directory comes before it.

    Errors: ENOENT, ENOTEMPTY (a directory of which something would stay), ESTALE.
    """
    draft = Draft(tree, now_ns)
    gone = set(keys)
    for parent, name in keys:
        child = tree.child(parent, name)
        if child is None:
            raise FsError(errno.ENOENT)
        draft.modify(parent)
        if child.directory is not None:
            if any(EntryKey(child.ino, below) not in gone for below in child.directory.entries):
                raise FsError(errno.ENOTEMPTY)
            draft.count_link(parent, -1)
        draft.drop_entry(parent, name)
        draft.unlink(child.ino)
    return draft.change(grows=False)
