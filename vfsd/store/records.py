"""The binary records of inodes and entries, and the version of their format.

All stores keep the same records, so a scope can be copied from one store to another byte by byte. The reference is
docs/format.md. A change here that an older vfsd cannot read must increment :data:`FORMAT`.
"""

import json
import struct

from vfsd.errors import FormatTooNew, ScopeDamaged
from vfsd.tree.change import Attributes, Limits, PutEntry

FORMAT = 1
"""The version of the stored format that this vfsd reads and writes."""

_INODE = struct.Struct("<IIIIQQqqqHH")
"""mode, nlink, uid, gid, rdev, size, atime, mtime, ctime (ns), target length, number of extended attributes."""
_XATTR = struct.Struct("<BI")
"""Length of the name and length of the value. The name and the value follow."""


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
    """Return the attributes in *record*. Raises ValueError for any bytes that :func:`pack_inode` did not write."""
    if len(record) == _INODE.size:
        # Most records have only the fixed part. A scope may have millions of them, so this path is short, and
        # tuple.__new__ makes the named tuple without the Python function Attributes.__new__.
        *plain, target_length, xattr_count = _INODE.unpack(record)
        if not (target_length or xattr_count):
            return tuple.__new__(Attributes, (*plain, b"", ()))
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
    """Return the entry with this *key* and *value*. Raises ValueError for bytes that are not an entry."""
    parent, slash, name = key.partition(b"/")
    ino, cookie = value.split(b" ")
    if not slash or not name:
        raise ValueError(f"{key!r} is not PARENT/NAME")
    return PutEntry(int(parent), name, int(ino), int(cookie))


def pack_limits(limits: Limits) -> str:
    """Return the limits that are set, as JSON, for the header of a scope."""
    return json.dumps({name: value for name, value in limits._asdict().items() if value})


def unpack_limits(text: str | bytes) -> Limits:
    """Return the limits in *text*. Raises ScopeDamaged for text that :func:`pack_limits` did not write."""
    try:
        return Limits(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise ScopeDamaged(f"the limits of a scope cannot be read ({error}): {text!r}") from None


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
