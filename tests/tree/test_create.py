"""Making names: create, mkdir, symlink, mknod and link; what a new inode is given, and what is refused."""

import errno
import os
import stat

import pytest

from tests.tree.planned_tree import BEGINNING, DIRECTORY, FIFO, FILE, GID, SYMLINK, UID, PlannedTree
from vfsd.tree.change import ROOT, Attributes, Change, PutEntry, PutInode
from vfsd.tree.inode import FIRST_COOKIE
from vfsd.tree.plan_names import EntryKey, NewInode, plan_create

NAME_OF_255 = b"n" * 255
NAME_OF_256 = b"n" * 256


def test_a_new_file_is_what_its_maker_says_and_as_old_as_the_call(planned: PlannedTree) -> None:
    ino = planned.create(b"file", ROOT, NewInode(stat.S_IFREG | 0o640, 7, 8))
    now = planned.now
    assert planned[ino] == Attributes(stat.S_IFREG | 0o640, 1, 7, 8, 0, 0, now, now, now)
    assert planned.listing() == {b"file": ino}


def test_a_new_file_touches_its_directory(planned: PlannedTree) -> None:
    before = planned[ROOT]
    planned.create(b"file")
    assert planned[ROOT] == before._replace(mtime_ns=planned.now, ctime_ns=planned.now)
    assert before.mtime_ns == BEGINNING


def test_creating_is_one_change_of_two_inodes_and_a_name(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    change = Change((PutInode(ROOT, planned[ROOT]), PutInode(ino, planned[ino]), PutEntry(ROOT, b"file", ino, 3)), True)
    assert planned.changes == [change]


def test_planning_alone_changes_nothing(planned: PlannedTree) -> None:
    change = plan_create(planned.tree, EntryKey(ROOT, b"file"), 2, NewInode(FILE, UID, GID), planned.now)
    assert change.ops
    assert planned.listing() == {}
    assert planned[ROOT].mtime_ns == BEGINNING


def test_a_new_directory_has_two_links_and_gives_its_parent_one(planned: PlannedTree) -> None:
    ino = planned.mkdir(b"dir")
    assert planned[ino].nlink == 2
    assert planned[ROOT].nlink == 3
    planned.create(b"file")
    assert planned[ROOT].nlink == 3


def test_a_symbolic_link_is_as_long_as_its_target(planned: PlannedTree) -> None:
    ino = planned.create(b"link", ROOT, NewInode(SYMLINK, UID, GID, target=b"../\xff/elsewhere"))
    assert planned[ino].target == b"../\xff/elsewhere"
    assert planned[ino].size == 14
    assert planned[ino].nlink == 1


@pytest.mark.parametrize("kind", [stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
def test_other_kinds_keep_type_mode_and_device(planned: PlannedTree, kind: int) -> None:
    device = os.makedev(12, 345678)
    ino = planned.create(b"node", ROOT, NewInode(kind | 0o7666, UID, GID, rdev=device))
    assert (planned[ino].mode, planned[ino].rdev, planned[ino].size) == (kind | 0o7666, device, 0)


@pytest.mark.parametrize(("parent_gid_bit", "group"), [(0, GID), (stat.S_ISGID, 77)])
@pytest.mark.parametrize("mode", [FILE, SYMLINK, FIFO])
def test_the_group_of_a_set_group_id_directory_is_handed_down(
    planned: PlannedTree, parent_gid_bit: int, group: int, mode: int
) -> None:
    parent = planned.create(b"dir", ROOT, NewInode(DIRECTORY | parent_gid_bit, 5, 77))
    ino = planned.create(b"child", parent, NewInode(mode, UID, GID))
    assert (planned[ino].uid, planned[ino].gid, planned[ino].mode) == (UID, group, mode)


def test_a_directory_inherits_the_set_group_id_bit_too(planned: PlannedTree) -> None:
    parent = planned.create(b"dir", ROOT, NewInode(DIRECTORY | stat.S_ISGID, 5, 77))
    child = planned.mkdir(b"child", parent)
    assert planned[child].mode == DIRECTORY | stat.S_ISGID
    grandchild = planned.create(b"file", child)
    assert planned[grandchild].gid == 77


def test_cookies_grow_and_are_never_given_again(planned: PlannedTree) -> None:
    def cookie(name: bytes) -> int:
        return planned.tree.directory(ROOT).entries[name].cookie

    planned.create(b"a")
    planned.create(b"b")
    assert (cookie(b"a"), cookie(b"b")) == (FIRST_COOKIE, FIRST_COOKIE + 1)
    planned.unlink(b"b")
    planned.create(b"b")
    assert cookie(b"b") == FIRST_COOKIE + 2


@pytest.mark.parametrize("name", [NAME_OF_255, b"\xff\xfe", b"\n", b" ", "Grüße".encode(), b"-rf"])
def test_names_are_any_bytes(planned: PlannedTree, name: bytes) -> None:
    ino = planned.create(name)
    assert planned.listing() == {name: ino}


def test_creating_is_refused(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    removed = planned.mkdir(b"removed")
    planned.open(removed)
    planned.rmdir(b"removed")
    with planned.refuses(errno.EEXIST):
        planned.create(b"file")
    with planned.refuses(errno.EEXIST):
        planned.mkdir(b"file")
    with planned.refuses(errno.ENAMETOOLONG):
        planned.create(NAME_OF_256)
    with planned.refuses(errno.ENOTDIR):
        planned.create(b"child", ino)
    with planned.refuses(errno.ENOENT):
        planned.create(b"child", removed)
    with planned.refuses(errno.ESTALE):
        planned.create(b"child", 99)


def test_a_link_is_another_name_of_the_same_inode(planned: PlannedTree) -> None:
    ino, directory = planned.create(b"file"), planned.mkdir(b"dir")
    before, parent = planned[ino], planned[directory]
    change = planned.link(ino, b"other", directory)
    assert planned.listing() == {b"file": ino, b"dir": directory}
    assert planned.listing(directory) == {b"other": ino}
    assert planned[ino] == before._replace(nlink=2, ctime_ns=planned.now)
    assert planned[directory] == parent._replace(mtime_ns=planned.now, ctime_ns=planned.now)
    assert change.grows


@pytest.mark.parametrize("mode", [SYMLINK, FIFO])
def test_whatever_is_no_directory_can_be_linked(planned: PlannedTree, mode: int) -> None:
    ino = planned.create(b"node", ROOT, NewInode(mode, UID, GID))
    planned.link(ino, b"other")
    assert planned[ino].nlink == 2


def test_linking_is_refused(planned: PlannedTree) -> None:
    ino, directory, removed = planned.create(b"file"), planned.mkdir(b"dir"), planned.mkdir(b"removed")
    orphan = planned.create(b"orphan")
    planned.open(orphan)
    planned.open(removed)
    planned.unlink(b"orphan")
    planned.rmdir(b"removed")
    with planned.refuses(errno.EPERM):
        planned.link(directory, b"other")
    with planned.refuses(errno.EEXIST):
        planned.link(ino, b"file")
    with planned.refuses(errno.EEXIST):
        planned.link(ino, b"dir")
    with planned.refuses(errno.ENAMETOOLONG):
        planned.link(ino, NAME_OF_256)
    with planned.refuses(errno.ENOTDIR):
        planned.link(ino, b"other", ino)
    with planned.refuses(errno.ENOENT):
        planned.link(ino, b"other", removed)
    with planned.refuses(errno.ENOENT):
        planned.link(orphan, b"again")
    with planned.refuses(errno.ESTALE):
        planned.link(99, b"other")
    with planned.refuses(errno.ESTALE):
        planned.link(ino, b"other", 99)
