"""A tree as one value, to compare it with its later state: everything that a program can read from it."""

import hashlib
import os
import stat
from pathlib import Path
from typing import NamedTuple


class PathFingerprint(NamedTuple):
    """Everything about one path. Times are in nanoseconds."""

    ino: int
    mode: int
    nlink: int
    uid: int
    gid: int
    rdev: int
    size: int
    blocks: int
    atime_ns: int
    mtime_ns: int
    ctime_ns: int
    content: bytes
    """SHA-256 of a file's content, target of a symbolic link, or names in a directory in the order of the listing."""
    xattrs: tuple[tuple[str, bytes], ...]


def fingerprint(root: Path) -> dict[bytes, PathFingerprint]:
    """Return the fingerprints of *root* and everything below it, by path relative to *root*."""
    fingerprints: dict[bytes, PathFingerprint] = {}
    waiting = [os.fsencode(root)]
    while waiting:
        path = waiting.pop()
        found = _fingerprint_of(path)
        fingerprints[os.path.relpath(path, os.fsencode(root))] = found
        if stat.S_ISDIR(found.mode) and found.content:
            waiting += [os.path.join(path, name) for name in found.content.split(b"/")]
    return fingerprints


def _fingerprint_of(path: bytes) -> PathFingerprint:
    info = os.lstat(path)
    names = os.listxattr(path, follow_symlinks=False)
    return PathFingerprint(
        info.st_ino,
        info.st_mode,
        info.st_nlink,
        info.st_uid,
        info.st_gid,
        info.st_rdev,
        info.st_size,
        info.st_blocks,
        info.st_atime_ns,
        info.st_mtime_ns,
        info.st_ctime_ns,
        _content(path, info.st_mode),
        tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in sorted(names)),
    )


def _content(path: bytes, mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if stat.S_ISDIR(mode):
        return b"/".join(os.listdir(path))
    if stat.S_ISREG(mode):
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    return b""
