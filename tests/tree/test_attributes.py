"""Planning attributes: chmod, chown, utimens, truncate in all combinations, and extended attributes."""

import errno
import itertools
import stat
from typing import Any

import pytest

from tests.tree.planned_tree import BEGINNING, DIRECTORY, FIFO, GID, SECOND, SYMLINK, UID, PlannedTree
from vfsd.tree.change import CHUNK_SIZE, ROOT, Change, DropChunks, DropInode, PutChunks, PutInode
from vfsd.tree.plan_attributes import (
    NOW,
    XATTR_LIST_MAX,
    XATTR_NAME_MAX,
    XATTR_VALUE_MAX,
    XATTRS_MAX,
    NewAttributes,
    plan_setattr,
)
from vfsd.tree.plan_names import EntryKey, NewInode, plan_create
from vfsd.tree.tree import MILLISECOND

FIELDS = {"mode": 0o4751, "uid": 5, "gid": 6, "atime_ns": 11, "mtime_ns": -12, "size": 3}


def test_a_mode_replaces_twelve_bits_and_no_more(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    before = planned[ino]
    change = planned.setattr(ino, mode=stat.S_IFDIR | 0o7751)
    assert planned[ino] == before._replace(mode=stat.S_IFREG | 0o7751, ctime_ns=planned.now)
    assert change == Change((PutInode(ino, planned[ino]),), grows=False)


def test_owner_and_group_change_alone(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    before = planned[ino]
    planned.setattr(ino, uid=0)
    assert planned[ino] == before._replace(uid=0, ctime_ns=planned.now)
    planned.setattr(ino, gid=2**32 - 2)
    assert planned[ino] == before._replace(uid=0, gid=2**32 - 2, ctime_ns=planned.now)


def test_times_are_set_to_the_nanosecond(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    before = planned[ino]
    planned.setattr(ino, atime_ns=123_456_789_012_345_678, mtime_ns=-1)
    assert planned[ino] == before._replace(atime_ns=123_456_789_012_345_678, mtime_ns=-1, ctime_ns=planned.now)
    planned.setattr(ino, atime_ns=0)
    assert planned[ino] == before._replace(atime_ns=0, mtime_ns=-1, ctime_ns=planned.now)


@pytest.mark.parametrize(("asked", "kept"), [(2**70, 2**63 - 1), (-(2**70), -(2**63 - 1)), (2**63 - 1, 2**63 - 1)])
def test_times_are_held_to_what_can_be_stored(planned: PlannedTree, asked: int, kept: int) -> None:
    ino = planned.create(b"file")
    planned.setattr(ino, atime_ns=asked, mtime_ns=asked)
    assert (planned[ino].atime_ns, planned[ino].mtime_ns) == (kept, kept)


@pytest.mark.parametrize(
    "names", [names for count in range(7) for names in itertools.combinations(FIELDS, count)], ids=" ".join
)
def test_any_combination_is_one_change(planned: PlannedTree, names: tuple[str, ...]) -> None:
    ino = planned.create(b"file")
    planned.write(ino, 0, b"hello")
    fields: dict[str, Any] = {name: FIELDS[name] for name in names}
    expected = planned[ino]._replace(ctime_ns=planned.now + SECOND)
    if "size" in fields:
        expected = expected._replace(mtime_ns=planned.now + SECOND)
    expected = expected._replace(**fields)
    if "mode" in fields:
        expected = expected._replace(mode=stat.S_IFREG | fields["mode"])
    change = planned.setattr(ino, **fields)
    assert planned[ino] == expected
    assert change.ops[0] == PutInode(ino, expected)
    assert planned.read(ino) == b"hello"[: expected.size]


@pytest.mark.parametrize("mode", [DIRECTORY, SYMLINK, FIFO, stat.S_IFSOCK | 0o600, stat.S_IFBLK | 0o600])
def test_every_kind_has_attributes_but_only_files_have_a_length(planned: PlannedTree, mode: int) -> None:
    ino = planned.create(b"node", ROOT, NewInode(mode, UID, GID))
    planned.setattr(ino, mode=0o1234, uid=3, mtime_ns=4)
    assert (planned[ino].mode, planned[ino].uid, planned[ino].mtime_ns) == (stat.S_IFMT(mode) | 0o1234, 3, 4)
    for size in (0, 5):
        with planned.refuses(errno.EISDIR if mode == DIRECTORY else errno.EINVAL):
            planned.setattr(ino, size=size, mode=0o777)


def test_shortening_cuts_content_for_good(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, 0, b"x" * (2 * CHUNK_SIZE + 10))
    change = planned.setattr(ino, size=CHUNK_SIZE + 1)
    assert change.ops == (PutInode(ino, planned[ino]), PutChunks(ino, {1: b"x"}, replaced=1), DropChunks(ino, (2,)))
    assert not change.grows
    assert planned.touched(ino) == (True, True)
    planned.setattr(ino, size=3 * CHUNK_SIZE)
    assert planned.read(ino) == b"x" * (CHUNK_SIZE + 1) + bytes(2 * CHUNK_SIZE - 1)
    assert planned.tree.content_bytes == CHUNK_SIZE + 1


def test_lengthening_adds_zeros_and_no_bytes(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, 0, b"data")
    change = planned.setattr(ino, size=2**40)
    assert change == Change((PutInode(ino, planned[ino]),), grows=True)
    assert planned[ino].size == 2**40
    assert planned.tree.content_bytes == 4


def test_truncating_to_nothing_drops_everything_at_once(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, 0, b"x" * (9 * CHUNK_SIZE))
    change = planned.setattr(ino, size=0)
    assert change == Change((PutInode(ino, planned[ino]), DropChunks(ino, None)), grows=False)
    assert planned.tree.content_bytes == 0


def test_truncating_to_the_same_size_moves_the_times_only(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, 0, b"data")
    change = planned.setattr(ino, size=4)
    assert change == Change((PutInode(ino, planned[ino]),), grows=False)
    assert planned.touched(ino) == (True, True)


def test_a_chunk_of_which_only_zeros_remain_is_dropped(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, CHUNK_SIZE, b"\0\0\0x")
    planned.setattr(ino, size=CHUNK_SIZE + 3)
    assert planned.tree.inode(ino).chunks == {}
    assert planned.read(ino) == bytes(CHUNK_SIZE + 3)


def test_an_open_file_without_a_name_has_attributes_that_are_not_stored(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, 0, b"data")
    planned.open(ino)
    planned.unlink(b"file")
    change = planned.setattr(ino, size=1, mode=0o600)
    assert change.ops[-1] == DropInode(ino, planned[ino])
    assert not [op for op in change.ops if isinstance(op, PutInode)]
    assert (planned[ino].nlink, planned[ino].size) == (0, 1)
    assert planned.read(ino) == b"d"


def test_attributes_of_what_is_gone_are_stale(planned: PlannedTree) -> None:
    for fields in ({"mode": 0o600}, {"size": 0}):
        with planned.refuses(errno.ESTALE):
            planned.setattr(99, **fields)
    with planned.refuses(errno.ESTALE):
        planned.setxattr(99, b"user.a", b"")
    with planned.refuses(errno.ESTALE):
        planned.removexattr(99, b"user.a")


def test_every_change_has_the_time_it_is_planned_for(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    at = planned[ino].mtime_ns - 10 * MILLISECOND  # after the clock was set back
    planned.tree.apply(plan_setattr(planned.tree, ino, NewAttributes(size=9), at))
    assert (planned[ino].mtime_ns, planned[ino].ctime_ns) == (at, at)
    planned.tree.apply(plan_setattr(planned.tree, ino, NewAttributes(mode=0o600), at + 1))
    assert (planned[ino].mtime_ns, planned[ino].ctime_ns) == (at, at + 1)
    planned.tree.apply(plan_create(planned.tree, EntryKey(ROOT, b"dir"), 9, NewInode(DIRECTORY, 0, 0), at + 2))
    assert planned[ROOT].mtime_ns == planned[ROOT].ctime_ns == at + 2


@pytest.mark.parametrize("which", ["atime_ns", "mtime_ns"])
def test_now_is_the_time_of_the_change(planned: PlannedTree, which: str) -> None:
    ino = planned.create(b"file")
    expected = {**planned[ino]._asdict(), which: 77, "ctime_ns": 77}
    new = NewAttributes(atime_ns=NOW) if which == "atime_ns" else NewAttributes(mtime_ns=NOW)
    planned.tree.apply(plan_setattr(planned.tree, ino, new, 77))
    assert planned[ino]._asdict() == expected


def test_a_time_that_is_asked_for_is_given_as_it_is(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.tree.inode(ino).shown = True
    change = plan_setattr(planned.tree, ino, NewAttributes(size=9, mtime_ns=BEGINNING), BEGINNING)
    planned.tree.apply(change)
    assert planned[ino].mtime_ns == BEGINNING


def test_extended_attributes_come_change_and_go(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    before = planned[ino]
    assert planned.setxattr(ino, b"user.a", b"1").grows
    planned.setxattr(ino, b"user.b", b"\0\xff")
    assert planned[ino] == before._replace(xattrs=((b"user.a", b"1"), (b"user.b", b"\0\xff")), ctime_ns=planned.now)
    planned.setxattr(ino, b"user.a", b"")
    assert planned[ino].xattrs == ((b"user.a", b""), (b"user.b", b"\0\xff"))
    change = planned.removexattr(ino, b"user.a")
    assert planned[ino] == before._replace(xattrs=((b"user.b", b"\0\xff"),), ctime_ns=planned.now)
    assert change == Change((PutInode(ino, planned[ino]),), grows=False)


def test_an_extended_attribute_that_is_not_there_cannot_be_removed(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    with planned.refuses(errno.ENODATA):
        planned.removexattr(ino, b"user.a")


def test_an_extended_attribute_may_be_as_large_as_linux_allows(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    longest = b"user." + b"n" * (XATTR_NAME_MAX - 5)
    planned.setxattr(ino, longest, bytes(XATTR_VALUE_MAX))
    assert dict(planned[ino].xattrs) == {longest: bytes(XATTR_VALUE_MAX)}
    with planned.refuses(errno.ERANGE):
        planned.setxattr(ino, longest + b"n", b"")
    with planned.refuses(errno.E2BIG):
        planned.setxattr(ino, b"user.a", bytes(XATTR_VALUE_MAX + 1))


def test_the_names_of_extended_attributes_must_fit_into_one_listing(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    names = [b"user.%0250d" % number for number in range(XATTR_LIST_MAX // 256)]
    for name in names:
        planned.setxattr(ino, name, b"")
    assert sum(len(name) + 1 for name, _ in planned[ino].xattrs) == XATTR_LIST_MAX
    with planned.refuses(errno.ENOSPC):
        planned.setxattr(ino, b"user.a", b"")
    planned.setxattr(ino, names[0], bytes(XATTR_VALUE_MAX))  # the largest value fits beside the longest list


def test_extended_attributes_share_a_limit(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    names = len(b"user.a") + len(b"user.b") + len(b"user.c")
    planned.setxattr(ino, b"user.a", bytes(XATTR_VALUE_MAX))
    planned.setxattr(ino, b"user.b", b"")
    rest = XATTRS_MAX - XATTR_VALUE_MAX - names
    with planned.refuses(errno.ENOSPC):
        planned.setxattr(ino, b"user.c", bytes(rest + 1))
    planned.setxattr(ino, b"user.c", bytes(rest))
    with planned.refuses(errno.ENOSPC):
        planned.setxattr(ino, b"user.b", b"x")
    planned.setxattr(ino, b"user.a", b"short")
    planned.setxattr(ino, b"user.b", b"x")
    assert dict(planned[ino].xattrs) == {b"user.a": b"short", b"user.b": b"x", b"user.c": bytes(rest)}
