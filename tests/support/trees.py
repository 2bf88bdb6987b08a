"""A directory tree as facts that can be compared: across a crash, a remount, or between two file systems."""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_WIDTH = 80


class Facts(NamedTuple):
    """Everything known about one path. *same_as* is the first path of the same file."""

    mode: int
    uid: int
    gid: int
    rdev: int
    nlink: int
    content: bytes
    target: bytes
    xattrs: tuple[tuple[bytes, bytes], ...]
    same_as: bytes


class Stamp(NamedTuple):
    """What a stat shows that no other file system would: inode number, and times in nanoseconds."""

    ino: int
    mtime_ns: int
    ctime_ns: int


class Found(NamedTuple):
    """What is below a directory, by path relative to it; the directory itself is ``b""``."""

    facts: dict[bytes, Facts]
    stamps: dict[bytes, Stamp]


def look_at(root: bytes) -> Found:
    """Return what is in the directory *root*."""
    facts: dict[bytes, Facts] = {}
    stamps: dict[bytes, Stamp] = {}
    first: dict[int, bytes] = {}
    for path in sorted(_paths(root)):
        full = os.path.join(root, path)
        seen = os.lstat(full)
        stamps[path] = stamp_of(seen)
        facts[path] = Facts(
            seen.st_mode,
            seen.st_uid,
            seen.st_gid,
            seen.st_rdev,
            seen.st_nlink,
            _content(full, seen),
            _target(full, seen),
            _xattrs(full),
            first.setdefault(seen.st_ino, path),
        )
    return Found(facts, stamps)


def stamp_of(seen: os.stat_result) -> Stamp:
    """Return the stamp that a stat shows."""
    return Stamp(seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns)


def _paths(root: bytes, path: bytes = b"") -> Iterator[bytes]:
    yield path
    with os.scandir(os.path.join(root, path)) as entries:
        for entry in entries:
            below = os.path.join(path, entry.name)
            if entry.is_dir(follow_symlinks=False):
                yield from _paths(root, below)
            else:
                yield below


def _content(full: bytes, seen: os.stat_result) -> bytes:
    if not stat.S_ISREG(seen.st_mode):
        return b""
    with open(full, "rb") as file:
        content = file.read()
    assert len(content) == seen.st_size, f"{full!r}: size {seen.st_size}, but {len(content)} bytes"
    return content


def _target(full: bytes, seen: os.stat_result) -> bytes:
    if not stat.S_ISLNK(seen.st_mode):
        return b""
    target = os.readlink(full)
    assert len(target) == seen.st_size, f"{full!r}: size {seen.st_size}, but {len(target)} bytes"
    return target


def _xattrs(full: bytes) -> tuple[tuple[bytes, bytes], ...]:
    try:
        names = sorted(map(os.fsencode, os.listxattr(full, follow_symlinks=False)))
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        return ()
    return tuple((name, os.getxattr(full, name, follow_symlinks=False)) for name in names)


def differences(wanted: Mapping[bytes, Facts], found: Mapping[bytes, Facts]) -> list[str]:
    """Return a line for each thing in which *found* is not as *wanted*."""
    lines = [f"{path!r} is missing" for path in sorted(wanted.keys() - found.keys())]
    lines += [f"{path!r} should not be there" for path in sorted(found.keys() - wanted.keys())]
    for path in sorted(wanted.keys() & found.keys()):
        for name, one, other in zip(Facts._fields, wanted[path], found[path], strict=True):
            if one != other:
                lines.append(f"{path!r}: {name} should be {_short(one)}, is {_short(other)}")
    return lines


def _short(value: object) -> str:
    if isinstance(value, bytes) and len(value) > _WIDTH:
        return f"{value[:24]!r}… ({len(value)} bytes, hash {hash(value):x})"
    return oct(value) if isinstance(value, int) else repr(value)
