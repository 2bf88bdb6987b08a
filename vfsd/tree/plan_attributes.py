"""Planning what happens to attributes: chmod, chown, utimens, truncate and extended attributes.

Sources: :manpage:`inode(7)`, :manpage:`truncate(2)`, :manpage:`utimensat(2)`, :manpage:`xattr(7)`.
"""

import errno
from typing import Any, NamedTuple

from vfsd.errors import FsError
from vfsd.tree.change import PERMISSIONS, Attributes, Change
from vfsd.tree.chunks import cut_chunks
from vfsd.tree.draft import Draft
from vfsd.tree.tree import Tree

XATTRS_MAX = 65536
"""Bytes of names and values that one inode may carry, as much as the kernel hands over in one listing."""

_TIME_LIMIT = 2**63 - 1


class NewAttributes(NamedTuple):
    """What a setattr asks for; None leaves a field alone. Times in nanoseconds, size in bytes."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    size: int | None = None
    atime_ns: int | None = None
    mtime_ns: int | None = None


def plan_setattr(tree: Tree, ino: int, new: NewAttributes, now_ns: int) -> Change:
    """Plan other attributes for *ino*, all in one. Errors: EISDIR, EINVAL (a size for what has none), ESTALE."""
    draft = Draft(tree, now_ns)
    fields = _fields(draft.attributes(ino), new)
    if new.size is None:
        draft.update(ino, **fields)
        return draft.change(grows=False)
    return _plan_truncate(draft, ino, fields)


def _fields(present: Attributes, new: NewAttributes) -> dict[str, Any]:
    """Return the attributes that *new* names, the file type kept and times held to what is storable."""
    fields = {name: value for name, value in new._asdict().items() if value is not None}
    if new.mode is not None:
        fields["mode"] = (present.mode & ~PERMISSIONS) | (new.mode & PERMISSIONS)
    for name in ("atime_ns", "mtime_ns"):
        if name in fields:
            fields[name] = max(-_TIME_LIMIT, min(_TIME_LIMIT, fields[name]))
    return fields


def _plan_truncate(draft: Draft, ino: int, fields: dict[str, Any]) -> Change:
    present, size = draft.attributes(ino), fields["size"]
    if present.is_directory:
        raise FsError(errno.EISDIR)
    if not present.is_regular:
        raise FsError(errno.EINVAL)
    draft.modify(ino, **fields)
    if size == 0:
        draft.drop_chunks(ino, None)
    elif size < present.size:
        shorter, dropped = cut_chunks(draft.tree.inode(ino).chunks, size)
        draft.put_chunks(ino, shorter)
        draft.drop_chunks(ino, dropped)
    return draft.change(grows=size > present.size)


def plan_setxattr(tree: Tree, ino: int, name: bytes, value: bytes, now_ns: int) -> Change:
    """Plan an extended attribute. Errors: ENOSPC (more than :data:`XATTRS_MAX` in all), ESTALE."""
    draft = Draft(tree, now_ns)
    xattrs = {**dict(draft.attributes(ino).xattrs), name: value}
    if sum(len(key) + 1 + len(content_) for key, content_ in xattrs.items()) > XATTRS_MAX:
        raise FsError(errno.ENOSPC)
    draft.update(ino, xattrs=tuple(xattrs.items()))
    return draft.change(grows=True)


def plan_removexattr(tree: Tree, ino: int, name: bytes, now_ns: int) -> Change:
    """Plan the end of an extended attribute. Errors: ENODATA, ESTALE."""
    draft = Draft(tree, now_ns)
    xattrs = dict(draft.attributes(ino).xattrs)
    if xattrs.pop(name, None) is None:
        raise FsError(errno.ENODATA)
    draft.update(ino, xattrs=tuple(xattrs.items()))
    return draft.change(grows=False)
