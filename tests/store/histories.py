"""Random histories of a scope, as a tree would make them: changes that a store must keep, and how it is used meanwhile.

A change touches no record twice, and chunks belong to regular files that are there: planning sees to that.
"""

from typing import NamedTuple

from hypothesis import strategies as st

from tests.support.stores import regular
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
_NAMES = st.binary(min_size=1, max_size=255).filter(lambda name: not {0, ord("/")} & set(name))
_FEW_NAMES = st.sampled_from([b"a", b"b", b"\xff", b"1/", b" "]).map(lambda name: name.replace(b"/", b"-")) | _NAMES
_NUMBERS = st.integers(0, 5) | st.integers(0, 2**49 - 1)
_TIMES = st.integers(-(2**63), 2**63 - 1)
_WORDS = st.integers(0, 2**32 - 1)
_CONTENT = st.binary(min_size=1, max_size=40) | st.binary(min_size=1, max_size=4).map(
    lambda seed: (seed * CHUNK_SIZE)[:CHUNK_SIZE]
)
_XATTRS = st.dictionaries(st.binary(min_size=1, max_size=255), st.binary(max_size=300), max_size=3)


_ATTRIBUTES = st.builds(
    Attributes,
    mode=st.integers(0o100000, 0o107777),
    nlink=_WORDS,
    uid=_WORDS,
    gid=_WORDS,
    rdev=st.integers(0, 2**64 - 1),
    size=st.integers(1, 2**63 - 1),
    atime_ns=_TIMES,
    mtime_ns=_TIMES,
    ctime_ns=_TIMES,
    target=st.binary(max_size=100),
    xattrs=_XATTRS.map(lambda xattrs: tuple(xattrs.items())),
)
"""Regular files with content; anything else about them is arbitrary."""


class Step(NamedTuple):
    """A change, how often it is committed in a row, and whether the scope is mounted anew afterwards."""

    change: Change
    times: int
    remount: bool


def _put_inodes(draw: st.DrawFn) -> list[Op]:
    return [
        PutInode(ino, attributes) for ino, attributes in draw(st.dictionaries(_INOS, _ATTRIBUTES, max_size=3)).items()
    ]


def _names(draw: st.DrawFn) -> list[Op]:
    places = draw(st.lists(st.tuples(_INOS, _FEW_NAMES), unique=True, max_size=4))
    return [
        PutEntry(*place, draw(_INOS), draw(st.integers(3, 2**62))) if draw(st.booleans()) else DropEntry(*place)
        for place in places
    ]


def _content(draw: st.DrawFn, ino: int) -> list[Op]:
    if draw(st.integers(0, 4)) == 0:
        return [DropChunks(ino, None)]
    put = draw(st.dictionaries(_NUMBERS, _CONTENT, min_size=1, max_size=4))
    dropped = draw(st.sets(_NUMBERS, max_size=4)) - put.keys()
    return [PutChunks(ino, put), DropChunks(ino, tuple(dropped))]


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Return some steps in the life of a scope."""
    living: set[int] = set()
    steps = []
    for _ in range(draw(st.integers(1, 10))):
        ops = _put_inodes(draw)
        put = {op.ino for op in ops if isinstance(op, PutInode)}
        gone = {ino for ino in sorted(living - put) if draw(st.integers(0, 3)) == 0}
        living = (living | put) - gone
        ops += _names(draw)
        for ino in sorted(living):
            if draw(st.booleans()):
                ops += _content(draw, ino)
        ops += [DropInode(ino, regular()) for ino in sorted(gone)]
        steps.append(Step(Change(tuple(ops), grows=True), draw(st.sampled_from([1, 1, 1, 2])), draw(st.booleans())))
    return steps
