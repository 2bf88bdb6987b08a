"""Planning changes that take several system calls: replace all content, create a path, remove a subtree.

The kernel never asks for these; the control socket and seeds do. Each follows the rules of the calls that it combines.
Sources: :manpage:`open(2)`, :manpage:`mkdir(2)`, :manpage:`rmdir(2)`.
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
    """The complete content of a regular file: its size in bytes, and the chunks that are not all zeros."""

    size: int = 0
    chunks: Mapping[int, bytes] = {}

    @classmethod
    def of(cls, data: bytes) -> "FileContent":
        """Return the content that consists of *data*."""
        return cls(len(data), {number: bytes(chunk) for number, chunk in write_chunks({}, 0, data).items() if chunk})


class NewEntry(NamedTuple):
    """An inode to be created under *name*. The number *ino* was never used before."""

    name: bytes
    ino: int
    new: NewInode


def plan_replace(tree: Tree, ino: int, content: FileContent, now_ns: int) -> Change:
    """Plan to replace all content of file *ino* by *content*. Errors: EINVAL (not a regular file), ESTALE."""
    draft = Draft(tree, now_ns)
    if not draft.attributes(ino).is_regular:
        raise FsError(errno.EINVAL)
    present = tree.inode(ino).chunks
    draft.modify(ino, size=content.size)
    draft.put_chunks(ino, {number: chunk for number, chunk in content.chunks.items() if present.get(number) != chunk})
    dropped = tuple(number for number in present if number not in content.chunks) if content.size else None
    draft.drop_chunks(ino, dropped)
    return draft.change(grows=content.size > 0)


def plan_create_path(tree: Tree, parent: int, entries: Sequence[NewEntry], content: FileContent, now_ns: int) -> Change:
    """Plan to create *entries*: the first in *parent*, every other one in the directory created just before it.

    *content* is the content of the last one, if it is a regular file.

    Errors: EEXIST, ENAMETOOLONG, ENOENT, ENOTDIR, ESTALE.
    """
    check_free(tree, EntryKey(parent, entries[0].name))
    draft = Draft(tree, now_ns)
    draft.modify(parent)
    directory = parent
    for entry in entries:
        check_name(entry.name)
        attributes = first_attributes(draft.attributes(directory), entry.new, now_ns)
        if attributes.is_directory:
            draft.count_link(directory, +1)
        draft.add(entry.ino, _with_size(attributes, content))
        draft.put_entry(directory, entry.name, entry.ino)
        directory = entry.ino
    draft.put_chunks(entries[-1].ino, content.chunks)
    return draft.change(grows=True)


def _with_size(attributes: Attributes, content: FileContent) -> Attributes:
    return attributes._replace(size=content.size) if attributes.is_regular else attributes


def plan_remove(tree: Tree, keys: Sequence[EntryKey], now_ns: int) -> Change:
    """Plan to remove the entries at all *keys*, of any kind. The entries of a directory must come before it.

    Errors: ENOENT, ENOTEMPTY (an entry of a directory is not among *keys*), ESTALE.
    """
    draft = Draft(tree, now_ns)
    removed = set(keys)
    for parent, name in keys:
        child = tree.child(parent, name)
        if child is None:
            raise FsError(errno.ENOENT)
        draft.modify(parent)
        if child.directory is not None:
            if any(EntryKey(child.ino, below) not in removed for below in child.directory.entries):
                raise FsError(errno.ENOTEMPTY)
            draft.count_link(parent, -1)
        draft.drop_entry(parent, name)
        draft.unlink(child.ino)
    return draft.change(grows=False)
