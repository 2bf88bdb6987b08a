"""The range of every field of every stored record: what a record may say, and why it is damaged if it says more.

Hydration must not let a value into the tree that a later request cannot handle: a size that no kernel takes, a number
that no store can count up from, a name that no directory can hold. So each function here raises ValueError for such a
value, and the stores report it as damage with its key. docs/format.md has the same ranges as a table.
"""

import re
import stat

from vfsd.tree.change import CHUNK_SIZE, ROOT, Attributes
from vfsd.tree.draft import NAME_MAX
from vfsd.tree.inode import FIRST_COOKIE
from vfsd.tree.plan_attributes import XATTR_LIST_MAX, XATTR_NAME_MAX, XATTR_VALUE_MAX, XATTRS_MAX, xattr_list_size
from vfsd.tree.plan_content import FILE_MAX

COUNT_MAX = 2**62
"""Largest inode number and largest cookie. The same number of further ones still fit in 63 bits, as a store needs."""

EPOCH_MAX = 10**13
"""Largest epoch of a header. A new scope begins with the time in ms, which reaches this in the year 2286.

A script in Redis returns an epoch as text of 14 digits at most, because numbers in Lua are floating-point numbers.
"""

SIGNED_MAX = 2**63 - 1
"""Largest value of all other numbers in a header: a store or a script keeps them in 63 bits."""

TARGET_MAX = 4095
"""Longest target of a symbolic link in bytes (:manpage:`symlink(2)`: PATH_MAX without the NUL)."""

DEVICE_MAX = 2**32 - 1
"""Largest device number that FUSE passes on."""

TIME_MAX_NS = 2**63 - 1
"""Latest time, and with a minus the earliest one: what planning limits times to."""

HEADER_NUMBERS = {
    "format": (0, SIGNED_MAX),
    "chunk_size": (0, SIGNED_MAX),
    "created": (0, SIGNED_MAX),
    "epoch": (1, EPOCH_MAX),
    "seq": (0, COUNT_MAX),
    "next": (ROOT + 1, COUNT_MAX),
    "dropping": (0, 1),
}
"""Least and largest value of each number in a header. What its limits may be: :func:`vfsd.store.records.unpack_limits`.
"""

KINDS = frozenset(
    kind >> 12
    for kind in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK)
)
"""The file types, as the bits of a mode above the permissions."""

NO_ID = 2**32 - 1
"""Not the number of a user or group: it means "leave it as it is" (:manpage:`chown(2)`)."""

_LAST_CHUNK = FILE_MAX // CHUNK_SIZE

_LONG = 19
"""Fewer digits than this are a number below every limit."""

_NUMBER = re.compile(rb"0|[1-9][0-9]{0,18}")
_ENTRY_KEY = re.compile(rb"([1-9][0-9]{0,18})/(.+)", re.DOTALL)
_ENTRY_VALUE = re.compile(rb"([1-9][0-9]{0,18}) ([1-9][0-9]{0,18})")

is_name = re.compile(rb"(?!\.\.?\Z)[^/\0]{1,%d}" % NAME_MAX).fullmatch
"""``is_name(name)`` says whether the kernel can look up *name*, and takes it in a listing (path_resolution(7))."""

is_scope_name = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._@:+-]{0,199}").fullmatch
"""``is_scope_name(name)`` says whether *name* can be the name of a scope."""


def number(text: bytes, least: int, most: int) -> int:
    """Return the decimal number *text*, written in the one way in which it is stored. Raises ValueError."""
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no decimal number")
    return within(int(text), least, most)


def within(value: int, least: int, most: int, what: str = "the number") -> int:
    """Return *value* if it is within its range. Raises ValueError."""
    if not least <= value <= most:
        raise ValueError(f"{what} {value} is not between {least} and {most}")
    return value


def check_header_number(field: str, value: int) -> None:
    """Raise ValueError unless the header may have this *value* in *field*."""
    within(value, *HEADER_NUMBERS[field], what=f"{field}")


def inode_number(text: bytes) -> int:
    """Return the inode number *text*. Raises ValueError."""
    if text.isdigit() and text >= b"1" and len(text) < _LONG:  # the short path: a scope may have millions
        return int(text)
    return number(text, ROOT, COUNT_MAX)


def check_attributes(attributes: Attributes) -> None:
    """Raise ValueError unless every field of *attributes* is in its range."""
    mode, nlink, uid, gid, rdev, size, *times, _target, xattrs = attributes
    if mode >> 12 not in KINDS:
        raise ValueError(f"the mode {mode:o} has no file type")
    within(nlink, 1, 2**32 - 1, "the number of links")
    within(uid, 0, NO_ID - 1, "the uid")
    within(gid, 0, NO_ID - 1, "the gid")
    within(rdev, 0, DEVICE_MAX, "the device number")
    within(size, 0, FILE_MAX, "the size")
    for time_ns in times:
        within(time_ns, -TIME_MAX_NS, TIME_MAX_NS, "the time")
    _check_target(attributes)
    if xattrs:
        _check_xattrs(xattrs)


def _check_target(attributes: Attributes) -> None:
    target = attributes.target
    if not stat.S_ISLNK(attributes.mode):
        if target:
            raise ValueError("only a symbolic link has a target")
    elif not 0 < len(target) <= TARGET_MAX or b"\0" in target:
        raise ValueError(f"a target has 1 to {TARGET_MAX} bytes without NUL; this one has {len(target)}")
    elif attributes.size != len(target):
        raise ValueError(f"the size {attributes.size} of a link is not the length of its target, {len(target)}")


def _check_xattrs(xattrs: tuple[tuple[bytes, bytes], ...]) -> None:
    for name, value in xattrs:
        if not 0 < len(name) <= XATTR_NAME_MAX or b"\0" in name:
            raise ValueError(f"an extended attribute has a name of {len(name)} bytes")
        if len(value) > XATTR_VALUE_MAX:
            raise ValueError(f"the extended attribute {name!r} has {len(value)} bytes")
    names = {name for name, _ in xattrs}
    if len(names) < len(xattrs):
        raise ValueError("two extended attributes have the same name")
    if xattr_list_size(names) > XATTR_LIST_MAX:
        raise ValueError(f"the names of the extended attributes have more than {XATTR_LIST_MAX} bytes")
    if sum(len(name) + len(value) for name, value in xattrs) > XATTRS_MAX:
        raise ValueError(f"the extended attributes have more than {XATTRS_MAX} bytes")


def entry_key_parts(key: bytes) -> tuple[int, bytes]:
    """Return the number of the directory and the name in the entry key *key*. Raises ValueError."""
    match = _ENTRY_KEY.fullmatch(key)
    if match is None:
        raise ValueError("this is not PARENT/NAME")
    parent, name = match.groups()
    if not is_name(name):
        raise ValueError("no directory can hold such a name")
    return within(int(parent), ROOT, COUNT_MAX, "the directory"), name


def entry_value_parts(value: bytes) -> tuple[int, int]:
    """Return the inode number and the cookie in the entry value *value*. Raises ValueError."""
    match = _ENTRY_VALUE.fullmatch(value)
    if match is None:
        raise ValueError(f"{value[:40]!r} is not INODE COOKIE")
    ino, cookie = map(int, match.groups())
    if ino == ROOT:
        raise ValueError("it names the root directory")
    within(ino, ROOT + 1, COUNT_MAX, "the inode number")
    return ino, within(cookie, FIRST_COOKIE, COUNT_MAX, "the cookie")


def chunk_number(text: bytes) -> int:
    """Return the chunk number *text*. Raises ValueError."""
    if text == b"0":  # the short path: most files have one chunk
        return 0
    return number(text, 0, _LAST_CHUNK)


def check_chunk(number: int, content: bytes | memoryview) -> None:
    """Raise ValueError unless *content* may be the chunk with this *number*."""
    within(number, 0, _LAST_CHUNK, "the chunk number")
    if not 0 < len(content) <= CHUNK_SIZE:
        raise ValueError(f"a chunk of {len(content)} bytes")
