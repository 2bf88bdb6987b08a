"""Whole files and branches: planned in one step, and nothing of the old left, nothing of the new forgotten."""

import errno
import random
import stat

import pytest

from tests.tree.rebuild import check_sound
from tests.tree.scene import DIRECTORY, FILE, GID, SYMLINK, UID, Scene
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
def test_new_content_for_old(scene: Scene, before: int, after: int) -> None:
    ino, content = scene.create(b"file"), _content(after, 2)
    scene.write(ino, 0, _content(before, 1))
    old = scene[ino]
    change = plan_replace(scene.tree, ino, FileContent.of(content), LATER)
    assert growth(scene.tree, change) == after - before
    assert change.grows is bool(after)
    scene.tree.apply(change)
    assert scene.read(ino) == content
    assert scene[ino] == old._replace(size=after, mtime_ns=LATER, ctime_ns=LATER)
    check_sound(scene.tree)


def test_chunks_that_stay_are_not_sent_again(scene: Scene) -> None:
    ino, content = scene.create(b"file"), _content(3 * CHUNK_SIZE, 1)
    scene.write(ino, 0, content)
    changed = content[:CHUNK_SIZE] + b"x" * CHUNK_SIZE + content[2 * CHUNK_SIZE :]
    change = plan_replace(scene.tree, ino, FileContent.of(changed), LATER)
    assert [op.chunks for op in change.ops if isinstance(op, PutChunks)] == [{1: b"x" * CHUNK_SIZE}]
    scene.tree.apply(change)
    assert scene.read(ino) == changed


def test_zeros_take_no_room(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.write(ino, 0, _content(CHUNK_SIZE, 1))
    scene.tree.apply(plan_replace(scene.tree, ino, FileContent.of(bytes(2 * CHUNK_SIZE)), LATER))
    assert scene.tree.content_bytes == 0
    assert scene.read(ino) == bytes(2 * CHUNK_SIZE)


def test_only_a_regular_file_has_content(scene: Scene) -> None:
    ino = scene.create(b"link", new=NewInode(SYMLINK, UID, GID, 0, b"x"))
    with scene.refuses(errno.EINVAL):
        plan_replace(scene.tree, ino, FileContent(), LATER)


def _branch(scene: Scene, *names: bytes, mode: int = FILE) -> list[NewEntry]:
    kinds = [DIRECTORY] * (len(names) - 1) + [mode]
    tree = scene.tree
    return [NewEntry(name, tree.allocate(), NewInode(kind, UID, GID)) for name, kind in zip(names, kinds, strict=True)]


@pytest.mark.parametrize("mode", [FILE, DIRECTORY])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_branch(scene: Scene, depth: int, mode: int) -> None:
    branch = _branch(scene, *(b"n%d" % number for number in range(depth)), mode=mode)
    whole = FileContent.of(_content(CHUNK_SIZE + 5, 1)) if mode == FILE else FileContent()
    change = plan_create_path(scene.tree, ROOT, branch, whole, LATER)
    assert growth(scene.tree, change) == whole.size
    scene.tree.apply(change)
    check_sound(scene.tree)
    parent = ROOT
    for sprout in branch:
        assert scene.listing(parent) == {sprout.name: sprout.ino}
        assert (scene[parent].mtime_ns, scene[sprout.ino].ctime_ns) == (LATER, LATER)
        parent = sprout.ino
    assert scene[parent].size == whole.size
    if mode == FILE:
        assert scene.read(parent) == _content(CHUNK_SIZE + 5, 1)


def test_a_branch_inherits_from_a_set_group_id_directory(scene: Scene) -> None:
    top = scene.create(b"top", new=NewInode(DIRECTORY | stat.S_ISGID, UID, 77))
    branch = _branch(scene, b"a", b"b", b"file")
    scene.tree.apply(plan_create_path(scene.tree, top, branch, FileContent(), LATER))
    assert [scene[sprout.ino].gid for sprout in branch] == [77, 77, 77]
    assert [bool(scene[sprout.ino].mode & stat.S_ISGID) for sprout in branch] == [True, True, False]


def test_a_branch_where_something_is(scene: Scene) -> None:
    ino = scene.create(b"file")
    with scene.refuses(errno.EEXIST):
        plan_create_path(scene.tree, ROOT, _branch(scene, b"file"), FileContent(), LATER)
    with scene.refuses(errno.ENOTDIR):
        plan_create_path(scene.tree, ino, _branch(scene, b"x"), FileContent(), LATER)
    with scene.refuses(errno.ENAMETOOLONG):
        plan_create_path(scene.tree, ROOT, _branch(scene, b"a", b"n" * 256), FileContent(), LATER)


def test_a_branch_is_held_against_the_limits(scene: Scene) -> None:
    change = plan_create_path(scene.tree, ROOT, _branch(scene, b"a", b"b"), FileContent.of(b"12345"), LATER)
    check_limits(scene.tree, change, Limits(max_bytes=5, max_files=3, max_file_bytes=5))
    for limits in (Limits(max_bytes=4), Limits(max_files=2), Limits(max_file_bytes=4)):
        with pytest.raises(FsError):
            check_limits(scene.tree, change, limits)


def test_removing_a_subtree(scene: Scene) -> None:
    top = scene.mkdir(b"top")
    below = scene.mkdir(b"below", top)
    ino = scene.create(b"file", below)
    scene.write(ino, 0, b"content")
    scene.link(ino, b"twice", below)
    scene.link(ino, b"outside")
    keys = [EntryKey(below, b"file"), EntryKey(below, b"twice"), EntryKey(top, b"below"), EntryKey(ROOT, b"top")]
    change = plan_remove(scene.tree, keys, LATER)
    assert change.grows is False
    scene.tree.apply(change)
    check_sound(scene.tree)
    assert scene.listing() == {b"outside": ino}
    assert (scene[ROOT].nlink, scene[ROOT].mtime_ns, scene[ino].nlink) == (2, LATER, 1)
    assert set(scene.tree.inodes) == {ROOT, ino}


def test_removing_what_is_not_there_or_not_all(scene: Scene) -> None:
    top = scene.mkdir(b"top")
    scene.create(b"file", top)
    scene.create(b"other", top)
    with scene.refuses(errno.ENOTEMPTY):
        plan_remove(scene.tree, [EntryKey(top, b"file"), EntryKey(ROOT, b"top")], LATER)
    with scene.refuses(errno.ENOENT):
        plan_remove(scene.tree, [EntryKey(top, b"missing")], LATER)
    assert plan_remove(scene.tree, [], LATER) == Change((), grows=False)
