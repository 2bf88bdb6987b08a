"""The binary records of inodes and entries, and the version of their format.

All stores keep the same records, so a scope can be copied from one store to another byte by byte. The reference is
docs/format.md. A change here that an older vfsd cannot read must increment :data:`FORMAT`.
"""

import json
import stat
import struct

from vfsd.errors import FormatTooNew, ScopeDamaged
from vfsd.store.ranges import (
    NO_ID,
    SIGNED_MAX,
    check_attributes,
    entry_key_parts,
    entry_value_parts,
    is_name,
    within,
)
from vfsd.tree.change import Attributes, Limits, PutEntry
from vfsd.tree.inode import FIRST_COOKIE
from vfsd.tree.plan_content import FILE_MAX

FORMAT = 1
"""The version of the stored format that this vfsd reads and writes."""

_INODE = struct.Struct("<IIIIQQqqqHH")
"""mode, nlink, uid, gid, rdev, size, atime, mtime, ctime (ns), target length, number of extended attributes."""
_XATTR = struct.Struct("<BI")
"""Length of the name and length of the value. The name and the value follow."""

_LONG = 19
"""Fewer digits than this are a number below every limit."""

_REGULAR = stat.S_IFREG >> 12
_DIRECTORY = stat.S_IFDIR >> 12


def pack_inode(attributes: Attributes) -> bytes:
    """Return the record of an inode: a fixed part, the link target, the name and value of each extended attribute."""
    (mode, nlink, uid, gid, rdev, size, atime_ns, mtime_ns, ctime_ns, target, xattrs) = attributes
    fixed = _INODE.pack(mode, nlink, uid, gid, rdev, size, atime_ns, mtime_ns, ctime_ns, len(target), len(xattrs))
    if not target and not xattrs:
        return fixed
    parts = [fixed, target]
    for name, value in xattrs:
        parts += (_XATTR.pack(len(name), len(value)), name, value)
    return b"".join(parts)


def unpack_inode(record: bytes) -> Attributes:
    """Return the attributes in *record*. Raises ValueError for bytes that are no inode within its ranges."""
    if len(record) == _INODE.size:
        # Most records have only the fixed part and everyday values. A scope may have millions of them, so this path is
        # short, and tuple.__new__ makes the named tuple without the Python function Attributes.__new__. What this test
        # does not accept is not damaged yet: check_attributes decides.
        plain = _INODE.unpack(record)
        mode, nlink, uid, gid, rdev, size, atime_ns, mtime_ns, ctime_ns, target_length, xattr_count = plain
        if (
            (mode >> 12 == _REGULAR or mode >> 12 == _DIRECTORY)
            and nlink
            and uid < NO_ID > gid
            and size <= FILE_MAX
            and atime_ns >= 0
            and mtime_ns >= 0
            and ctime_ns >= 0
            and not (rdev or target_length or xattr_count)
        ):
            return tuple.__new__(Attributes, (mode, nlink, uid, gid, 0, size, atime_ns, mtime_ns, ctime_ns, b"", ()))
    attributes = _unpack_whole(record)
    check_attributes(attributes)
    return attributes


def _unpack_whole(record: bytes) -> Attributes:
    """Return the attributes in *record*, with link target and extended attributes. Raises ValueError."""
    try:
        fields: tuple[int, ...] = _INODE.unpack_from(record)
        target_length, xattr_count = fields[9:]
        position = _INODE.size + target_length
        target = record[_INODE.size : position]
        xattrs = []
        for _ in range(xattr_count):
            name_length, value_length = _XATTR.unpack_from(record, position)
            name_end = position + _XATTR.size + name_length
            xattrs.append((record[position + _XATTR.size : name_end], record[name_end : name_end + value_length]))
            position = name_end + value_length
    except struct.error as error:
        raise ValueError(f"an inode record of {len(record)} bytes is cut short ({error})") from None
    if position != len(record):
        raise ValueError(f"an inode record of {len(record)} bytes should have {position}")
    return Attributes._make((*fields[:9], target, tuple(xattrs)))


def entry_key(parent: int, name: bytes) -> bytes:
    """Return the key of a directory entry: the parent's inode number in decimal, a slash, the bytes of the name."""
    return b"%d/%b" % (parent, name)


def entry_value(ino: int, cookie: int) -> bytes:
    """Return the value of a directory entry: inode number and cookie in decimal, with a space between them."""
    return b"%d %d" % (ino, cookie)


def unpack_entry(key: bytes, value: bytes) -> PutEntry:
    """Return the entry with this *key* and *value*. Raises ValueError for bytes that are no entry within its ranges."""
    parent, _, name = key.partition(b"/")
    ino, _, cookie = value.partition(b" ")
    # The short path, as in unpack_inode. Digits that compare greater than "1" have no zero in front.
    if (
        parent.isdigit()
        and parent >= b"1"
        and ino.isdigit()
        and ino > b"1"
        and cookie.isdigit()
        and cookie >= b"1"
        and len(parent) < _LONG > len(value)
        and is_name(name)
    ):
        place = int(cookie)
        if place >= FIRST_COOKIE:
            return tuple.__new__(PutEntry, (int(parent), name, int(ino), place))
    return PutEntry(*entry_key_parts(key), *entry_value_parts(value))


def pack_limits(limits: Limits) -> str:
    """Return the limits that are set, as JSON, for the header of a scope."""
    return json.dumps({name: value for name, value in limits._asdict().items() if value})


def unpack_limits(text: str | bytes) -> Limits:
    """Return the limits in *text*. Raises ValueError for text that :func:`pack_limits` did not write."""
    try:
        limits = Limits(**json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"the limits cannot be read ({error}): {text[:200]!r}") from None
    for name, limit in limits._asdict().items():
        if type(limit) is not int:
            if limit is None:
                continue
            raise ValueError(f"the limit {name} is no number: {limit!r}"[:300])
        within(limit, 0, SIGNED_MAX, f"the limit {name}")
    return limits


def check_format(scope: str, version: int, chunk_size: int, expected_chunk_size: int) -> None:
    """Refuse a scope with a format that this vfsd cannot read. Raises FormatTooNew or ScopeDamaged."""
    if version > FORMAT:
        raise FormatTooNew(
            f"scope {scope} is stored in format {version}, and this vfsd reads up to {FORMAT}; upgrade vfsd"
        )
    if version < 1 or chunk_size != expected_chunk_size:
        raise ScopeDamaged(
            f"scope {scope} has format {version} and chunks of {chunk_size} bytes, which no vfsd has written;"
            " restore it from a backup, or destroy it with 'vfsd destroy'"
        )
