"""Replacing all content, creating a path, and removing a subtree, each in one change."""

import errno
import random
import stat

import pytest

from tests.tree.planned_tree import DIRECTORY, FILE, GID, SYMLINK, UID, PlannedTree
from tests.tree.rebuild import check_sound
from vfsd.errors import FsError
from vfsd.tree.change import CHUNK_SIZE, ROOT, Change, Limits, PutChunks
from vfsd.tree.limits import check_limits, growth
from vfsd.tree.plan_names import EntryKey, NewInode
from vfsd.tree.plan_subtree import FileContent, NewEntry, plan_create_path, plan_remove, plan_replace

SIZES = (0, 1, CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 1, 3 * CHUNK_SIZE)
LATER = 2_000_000_000_000_000_000


def _content(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("before", SIZES)
@pytest.mark.parametrize("after", SIZES)
def test_replacing_all_content(planned: PlannedTree, before: int, after: int) -> None:
    ino, content = planned.create(b"file"), _content(after, 2)
    planned.write(ino, 0, _content(before, 1))
    old = planned[ino]
    change = plan_replace(planned.tree, ino, FileContent.of(content), LATER)
    assert growth(planned.tree, change) == after - before
    assert change.grows is bool(after)
    planned.tree.apply(change)
    assert planned.read(ino) == content
    assert planned[ino] == old._replace(size=after, mtime_ns=LATER, ctime_ns=LATER)
    check_sound(planned.tree)


def test_chunks_that_stay_are_not_sent_again(planned: PlannedTree) -> None:
    ino, content = planned.create(b"file"), _content(3 * CHUNK_SIZE, 1)
    planned.write(ino, 0, content)
    changed = content[:CHUNK_SIZE] + b"x" * CHUNK_SIZE + content[2 * CHUNK_SIZE :]
    change = plan_replace(planned.tree, ino, FileContent.of(changed), LATER)
    assert [op.chunks for op in change.ops if isinstance(op, PutChunks)] == [{1: b"x" * CHUNK_SIZE}]
    planned.tree.apply(change)
    assert planned.read(ino) == changed


def test_zeros_take_no_room(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, 0, _content(CHUNK_SIZE, 1))
    planned.tree.apply(plan_replace(planned.tree, ino, FileContent.of(bytes(2 * CHUNK_SIZE)), LATER))
    assert planned.tree.content_bytes == 0
    assert planned.read(ino) == bytes(2 * CHUNK_SIZE)


def test_only_a_regular_file_has_content(planned: PlannedTree) -> None:
    ino = planned.create(b"link", new=NewInode(SYMLINK, UID, GID, 0, b"x"))
    with planned.refuses(errno.EINVAL):
        plan_replace(planned.tree, ino, FileContent(), LATER)


def _branch(planned: PlannedTree, *names: bytes, mode: int = FILE) -> list[NewEntry]:
    kinds = [DIRECTORY] * (len(names) - 1) + [mode]
    tree = planned.tree
    return [NewEntry(name, tree.allocate(), NewInode(kind, UID, GID)) for name, kind in zip(names, kinds, strict=True)]


@pytest.mark.parametrize("mode", [FILE, DIRECTORY])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_branch(planned: PlannedTree, depth: int, mode: int) -> None:
    branch = _branch(planned, *(b"n%d" % number for number in range(depth)), mode=mode)
    content_of = FileContent.of(_content(CHUNK_SIZE + 5, 1)) if mode == FILE else FileContent()
    change = plan_create_path(planned.tree, ROOT, branch, content_of, LATER)
    assert growth(planned.tree, change) == content_of.size
    planned.tree.apply(change)
    check_sound(planned.tree)
    parent = ROOT
    for entry in branch:
        assert planned.listing(parent) == {entry.name: entry.ino}
        assert (planned[parent].mtime_ns, planned[entry.ino].ctime_ns) == (LATER, LATER)
        parent = entry.ino
    assert planned[parent].size == content_of.size
    if mode == FILE:
        assert planned.read(parent) == _content(CHUNK_SIZE + 5, 1)


def test_a_branch_inherits_from_a_set_group_id_directory(planned: PlannedTree) -> None:
    top = planned.create(b"top", new=NewInode(DIRECTORY | stat.S_ISGID, UID, 77))
    branch = _branch(planned, b"a", b"b", b"file")
    planned.tree.apply(plan_create_path(planned.tree, top, branch, FileContent(), LATER))
    assert [planned[entry.ino].gid for entry in branch] == [77, 77, 77]
    assert [bool(planned[entry.ino].mode & stat.S_ISGID) for entry in branch] == [True, True, False]


def test_a_branch_where_an_entry_exists(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    with planned.refuses(errno.EEXIST):
        plan_create_path(planned.tree, ROOT, _branch(planned, b"file"), FileContent(), LATER)
    with planned.refuses(errno.ENOTDIR):
        plan_create_path(planned.tree, ino, _branch(planned, b"x"), FileContent(), LATER)
    with planned.refuses(errno.ENAMETOOLONG):
        plan_create_path(planned.tree, ROOT, _branch(planned, b"a", b"n" * 256), FileContent(), LATER)


def test_limits_apply_to_a_branch(planned: PlannedTree) -> None:
    change = plan_create_path(planned.tree, ROOT, _branch(planned, b"a", b"b"), FileContent.of(b"12345"), LATER)
    check_limits(planned.tree, change, Limits(max_bytes=5, max_files=3, max_file_bytes=5))
    for limits in (Limits(max_bytes=4), Limits(max_files=2), Limits(max_file_bytes=4)):
        with pytest.raises(FsError):
            check_limits(planned.tree, change, limits)


def test_removing_a_subtree(planned: PlannedTree) -> None:
    top = planned.mkdir(b"top")
    below = planned.mkdir(b"below", top)
    ino = planned.create(b"file", below)
    planned.write(ino, 0, b"content")
    planned.link(ino, b"twice", below)
    planned.link(ino, b"outside")
    keys = [EntryKey(below, b"file"), EntryKey(below, b"twice"), EntryKey(top, b"below"), EntryKey(ROOT, b"top")]
    change = plan_remove(planned.tree, keys, LATER)
    assert change.grows is False
    planned.tree.apply(change)
    check_sound(planned.tree)
    assert planned.listing() == {b"outside": ino}
    assert (planned[ROOT].nlink, planned[ROOT].mtime_ns, planned[ino].nlink) == (2, LATER, 1)
    assert set(planned.tree.inodes) == {ROOT, ino}


def test_removing_what_is_not_there_or_not_all(planned: PlannedTree) -> None:
    top = planned.mkdir(b"top")
    planned.create(b"file", top)
    planned.create(b"other", top)
    with planned.refuses(errno.ENOTEMPTY):
        plan_remove(planned.tree, [EntryKey(top, b"file"), EntryKey(ROOT, b"top")], LATER)
    with planned.refuses(errno.ENOENT):
        plan_remove(planned.tree, [EntryKey(top, b"missing")], LATER)
    assert plan_remove(planned.tree, [], LATER) == Change((), grows=False)
