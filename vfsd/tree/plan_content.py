"""Planning changes of the content of a regular file (:manpage:`pwrite(2)`)."""

import errno
import stat

from vfsd.errors import FsError
from vfsd.tree.change import Change
from vfsd.tree.chunks import write_chunks
from vfsd.tree.draft import Draft
from vfsd.tree.tree import Tree

FILE_MAX = 2**63 - 1
"""Largest offset in a file, in bytes (``loff_t``)."""


def plan_write(tree: Tree, ino: int, offset: int, data: bytes, now_ns: int) -> Change:
    """Plan to write *data* at *offset* of file *ino*. Empty *data* changes nothing.

    Errors: EFBIG, EINVAL (not a regular file), ESTALE.
    """
    if offset + len(data) > FILE_MAX:
        raise FsError(errno.EFBIG)
    draft = Draft(tree, now_ns)
    attributes, chunks = draft.attributes(ino), tree.inode(ino).chunks
    if not stat.S_ISREG(attributes.mode):
        raise FsError(errno.EINVAL)
    if not data:
        return Change((), grows=False)
    changed = write_chunks(chunks, offset, data)
    draft.modify(ino, size=max(attributes.size, offset + len(data)))
    draft.put_chunks(ino, {number: chunk for number, chunk in changed.items() if chunk})
    draft.drop_chunks(ino, tuple(number for number, chunk in changed.items() if not chunk and number in chunks))
    return draft.change(grows=True)
