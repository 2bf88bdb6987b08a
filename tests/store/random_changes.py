"""Random sequences of changes to a scope, of the kind that a tree plans.

A change touches no record twice, and puts chunks only into regular files that exist: the planning of a tree guarantees
both, so a store may rely on it.
"""

import stat
from typing import NamedTuple

from hypothesis import strategies as st

from tests.support.stores import regular
from vfsd.store.ranges import is_name
from vfsd.tree.change import (
    CHUNK_SIZE,
    Attributes,
    Change,
    DropChunks,
    DropEntry,
    DropInode,
    Op,
    PutChunks,
    PutEntry,
    PutInode,
)

_INOS = st.integers(1, 6)
_NAMES = st.binary(min_size=1, max_size=255).filter(is_name)
_FEW_NAMES = st.sampled_from([b"a", b"b", b"\xff", b"1/", b" "]).map(lambda name: name.replace(b"/", b"-")) | _NAMES
_NUMBERS = st.integers(0, 5) | st.integers(0, 2**49 - 1)
_TIMES = st.integers(-(2**63) + 1, 2**63 - 1)
_IDS = st.integers(0, 2**32 - 2)
_CONTENT = st.binary(min_size=1, max_size=40) | st.binary(min_size=1, max_size=4).map(
    lambda seed: (seed * CHUNK_SIZE)[:CHUNK_SIZE]
)
_XATTR_NAMES = st.binary(min_size=1, max_size=255).filter(lambda name: 0 not in name)
_XATTRS = st.dictionaries(_XATTR_NAMES, st.binary(max_size=300), max_size=3)


_ATTRIBUTES = st.builds(
    Attributes,
    mode=st.integers(0o100000, 0o107777),
    nlink=st.integers(1, 2**32 - 1),
    uid=_IDS,
    gid=_IDS,
    rdev=st.integers(0, 2**32 - 1),
    size=st.integers(1, 2**63 - 1),
    atime_ns=_TIMES,
    mtime_ns=_TIMES,
    ctime_ns=_TIMES,
    target=st.just(b""),
    xattrs=_XATTRS.map(lambda xattrs: tuple(xattrs.items())),
)
"""Attributes of regular files with content. All other fields are arbitrary within their ranges."""

_LINK = 7
_TARGETS = st.binary(min_size=1, max_size=100).filter(lambda target: 0 not in target)


class Step(NamedTuple):
    """A change, how often it is committed in a row, and whether the scope is then released and claimed again."""

    change: Change
    times: int
    reclaim: bool


def _put_inodes(draw: st.DrawFn) -> list[Op]:
    files = draw(st.dictionaries(_INOS, _ATTRIBUTES, max_size=3))
    return [PutInode(ino, attributes) for ino, attributes in files.items()]


def _put_link(draw: st.DrawFn) -> Op:
    target = draw(_TARGETS)
    return PutInode(_LINK, Attributes(stat.S_IFLNK | 0o777, 1, 0, 0, 0, len(target), 1, 2, 3, target))


def _entries(draw: st.DrawFn) -> list[Op]:
    keys = draw(st.lists(st.tuples(_INOS, _FEW_NAMES), unique=True, max_size=4))
    return [
        PutEntry(*key, draw(st.integers(2, _LINK)), draw(st.integers(3, 2**62)))
        if draw(st.booleans())
        else DropEntry(*key)
        for key in keys
    ]


def _content(draw: st.DrawFn, ino: int) -> list[Op]:
    if draw(st.integers(0, 4)) == 0:
        return [DropChunks(ino, None)]
    put = draw(st.dictionaries(_NUMBERS, _CONTENT, min_size=1, max_size=4))
    dropped = draw(st.sets(_NUMBERS, max_size=4)) - put.keys()
    return [PutChunks(ino, put), DropChunks(ino, tuple(dropped))]


@st.composite
def random_steps(draw: st.DrawFn) -> list[Step]:
    """Return a sequence of steps that starts with an empty scope."""
    existing: set[int] = set()
    steps = []
    for _ in range(draw(st.integers(1, 10))):
        ops = _put_inodes(draw)
        put = {op.ino for op in ops if isinstance(op, PutInode)}
        dropped = {ino for ino in sorted(existing - put) if draw(st.integers(0, 3)) == 0}
        existing = (existing | put) - dropped
        ops += _entries(draw)
        for ino in sorted(existing):
            if draw(st.booleans()):
                ops += _content(draw, ino)
        ops += [DropInode(ino, regular()) for ino in sorted(dropped)]
        ops += [_put_link(draw)] if draw(st.booleans()) else []
        steps.append(Step(Change(tuple(ops), grows=True), draw(st.sampled_from([1, 1, 1, 2])), draw(st.booleans())))
    return steps
