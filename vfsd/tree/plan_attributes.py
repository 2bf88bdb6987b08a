"""Planning changes of attributes: chmod, chown, utimens, truncate and extended attributes.

Sources: :manpage:`inode(7)`, :manpage:`truncate(2)`, :manpage:`utimensat(2)`, :manpage:`xattr(7)`.
"""

import enum
import errno
import stat
from collections.abc import Callable, Collection
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from vfsd.errors import FsError
from vfsd.tree.change import PERMISSIONS, Attributes, Change
from vfsd.tree.chunks import cut_chunks
from vfsd.tree.draft import Draft
from vfsd.tree.tree import Tree

XATTR_NAME_MAX = 255
XATTR_VALUE_MAX = 65536
XATTR_LIST_MAX = 65536
"""What Linux allows (:manpage:`xattr(7)`): bytes of a name, of a value, and of all names with a NUL after each."""

XATTRS_MAX = XATTR_VALUE_MAX + XATTR_LIST_MAX
"""Most bytes of names and values on one inode: the largest value and the longest list of names fit.

Every change of an inode stores its whole record, so the total must have a limit.
"""

IsMember: TypeAlias = Callable[[int], bool]
"""Whether the caller is a member of the group with this number. It is asked only if the answer matters."""

_TIME_MAX_NS = 2**63 - 1


class _Special(enum.Enum):
    NOW = enum.auto()


NOW: Final = _Special.NOW
"""As a time to be set: the time of the change itself."""

NewTime: TypeAlias = int | Literal[_Special.NOW] | None
"""A time to be set, in nanoseconds; or :data:`NOW`; None means no change."""


class NewAttributes(NamedTuple):
    """What a setattr asks for. None means no change. The size is in bytes."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    size: int | None = None
    atime_ns: NewTime = None
    mtime_ns: NewTime = None


def plan_setattr(tree: Tree, ino: int, new: NewAttributes, now_ns: int) -> Change:
    """Plan new attributes for *ino*, all in one change.

    Errors: EISDIR (a size for a directory), EINVAL (a size for a link, FIFO, socket or device), ESTALE.
    """
    draft = Draft(tree, now_ns)
    fields = _fields(draft.attributes(ino), new, now_ns)
    if new.size is None:
        draft.update(ino, **fields)
        return draft.change(grows=False)
    return _plan_truncate(draft, ino, fields)


def _fields(present: Attributes, new: NewAttributes, now_ns: int) -> dict[str, Any]:
    """Return the attributes that *new* sets. The file type stays, and times are limited to what can be stored."""
    fields: dict[str, Any] = {name: value for name, value in new._asdict().items() if value is not None}
    if new.mode is not None:
        fields["mode"] = (present.mode & ~PERMISSIONS) | (new.mode & PERMISSIONS)
    for name in ("atime_ns", "mtime_ns"):
        if name in fields:
            fields[name] = now_ns if fields[name] is NOW else max(-_TIME_MAX_NS, min(_TIME_MAX_NS, fields[name]))
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


def plan_truncate(tree: Tree, ino: int, now_ns: int, is_member: IsMember | None = None) -> Change:
    """Plan that file *ino* becomes empty, opened by a caller without CAP_FSETID, or with it (*is_member* is None).

    Without it the file loses its set-user-ID bit, and its set-group-ID bit if the group may execute it or the caller is
    not in the group, as Linux does when a file is truncated (fs/attr.c, ``setattr_should_drop_sgid``). For a truncation
    by open(O_TRUNC) it leaves that to the file system. Errors: as for :func:`plan_setattr`.
    """
    present = tree.inode(ino).attributes
    kept = present.mode if is_member is None else _without_privileges(present, is_member)
    return plan_setattr(tree, ino, NewAttributes(size=0, mode=None if kept == present.mode else kept), now_ns)


def _without_privileges(attributes: Attributes, is_member: IsMember) -> int:
    mode = attributes.mode & ~stat.S_ISUID
    if mode & stat.S_ISGID and (mode & stat.S_IXGRP or not is_member(attributes.gid)):
        mode &= ~stat.S_ISGID
    return mode


def plan_setxattr(tree: Tree, ino: int, name: bytes, value: bytes, now_ns: int) -> Change:
    """Plan to set an extended attribute.

    Errors: ERANGE (the name), E2BIG (the value), ENOSPC (the list of names, or the total), ESTALE.
    """
    draft = Draft(tree, now_ns)
    xattrs = {**dict(draft.attributes(ino).xattrs), name: value}
    if not 0 < len(name) <= XATTR_NAME_MAX:
        raise FsError(errno.ERANGE)
    if len(value) > XATTR_VALUE_MAX:
        raise FsError(errno.E2BIG)
    total = sum(len(each) + len(its_value) for each, its_value in xattrs.items())
    if xattr_list_size(xattrs) > XATTR_LIST_MAX or total > XATTRS_MAX:
        raise FsError(errno.ENOSPC)
    draft.update(ino, xattrs=tuple(xattrs.items()))
    return draft.change(grows=True)


def xattr_list_size(names: Collection[bytes]) -> int:
    """Return how many bytes :manpage:`listxattr(2)` returns for *names*: each ends with a NUL."""
    return sum(map(len, names)) + len(names)


def plan_removexattr(tree: Tree, ino: int, name: bytes, now_ns: int) -> Change:
    """Plan to remove an extended attribute. Errors: ENODATA, ESTALE."""
    draft = Draft(tree, now_ns)
    xattrs = dict(draft.attributes(ino).xattrs)
    if xattrs.pop(name, None) is None:
        raise FsError(errno.ENODATA)
    draft.update(ino, xattrs=tuple(xattrs.items()))
    return draft.change(grows=False)
