"""Making names: create, mkdir, symlink, mknod and link; what a new inode is given, and what is refused."""

import errno
import os
import stat

import pytest

from tests.tree.scene import BEGINNING, DIRECTORY, FIFO, FILE, GID, SYMLINK, UID, Scene
from vfsd.tree.change import ROOT, Attributes, Change, PutEntry, PutInode
from vfsd.tree.inode import FIRST_COOKIE
from vfsd.tree.plan_names import EntryKey, NewInode, plan_create

NAME_OF_255 = b"n" * 255
NAME_OF_256 = b"n" * 256


def test_a_new_file_is_what_its_maker_says_and_as_old_as_the_call(scene: Scene) -> None:
    ino = scene.create(b"file", ROOT, NewInode(stat.S_IFREG | 0o640, 7, 8))
    now = scene.now
    assert scene[ino] == Attributes(stat.S_IFREG | 0o640, 1, 7, 8, 0, 0, now, now, now)
    assert scene.listing() == {b"file": ino}


def test_a_new_file_touches_its_directory(scene: Scene) -> None:
    before = scene[ROOT]
    scene.create(b"file")
    assert scene[ROOT] == before._replace(mtime_ns=scene.now, ctime_ns=scene.now)
    assert before.mtime_ns == BEGINNING


def test_creating_is_one_change_of_two_inodes_and_a_name(scene: Scene) -> None:
    ino = scene.create(b"file")
    change = Change((PutInode(ROOT, scene[ROOT]), PutInode(ino, scene[ino]), PutEntry(ROOT, b"file", ino, 3)), True)
    assert scene.changes == [change]


def test_planning_alone_changes_nothing(scene: Scene) -> None:
    change = plan_create(scene.tree, EntryKey(ROOT, b"file"), 2, NewInode(FILE, UID, GID), scene.now)
    assert change.ops
    assert scene.listing() == {}
    assert scene[ROOT].mtime_ns == BEGINNING


def test_a_new_directory_has_two_links_and_gives_its_parent_one(scene: Scene) -> None:
    ino = scene.mkdir(b"dir")
    assert scene[ino].nlink == 2
    assert scene[ROOT].nlink == 3
    scene.create(b"file")
    assert scene[ROOT].nlink == 3


def test_a_symbolic_link_is_as_long_as_its_target(scene: Scene) -> None:
    ino = scene.create(b"link", ROOT, NewInode(SYMLINK, UID, GID, target=b"../\xff/elsewhere"))
    assert scene[ino].target == b"../\xff/elsewhere"
    assert scene[ino].size == 14
    assert scene[ino].nlink == 1


@pytest.mark.parametrize("kind", [stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
def test_other_kinds_keep_type_mode_and_device(scene: Scene, kind: int) -> None:
    device = os.makedev(12, 345678)
    ino = scene.create(b"node", ROOT, NewInode(kind | 0o7666, UID, GID, rdev=device))
    assert (scene[ino].mode, scene[ino].rdev, scene[ino].size) == (kind | 0o7666, device, 0)


@pytest.mark.parametrize(("parent_gid_bit", "group"), [(0, GID), (stat.S_ISGID, 77)])
@pytest.mark.parametrize("mode", [FILE, SYMLINK, FIFO])
def test_the_group_of_a_set_group_id_directory_is_handed_down(
    scene: Scene, parent_gid_bit: int, group: int, mode: int
) -> None:
    parent = scene.create(b"dir", ROOT, NewInode(DIRECTORY | parent_gid_bit, 5, 77))
    ino = scene.create(b"child", parent, NewInode(mode, UID, GID))
    assert (scene[ino].uid, scene[ino].gid, scene[ino].mode) == (UID, group, mode)


def test_a_directory_inherits_the_set_group_id_bit_too(scene: Scene) -> None:
    parent = scene.create(b"dir", ROOT, NewInode(DIRECTORY | stat.S_ISGID, 5, 77))
    child = scene.mkdir(b"child", parent)
    assert scene[child].mode == DIRECTORY | stat.S_ISGID
    grandchild = scene.create(b"file", child)
    assert scene[grandchild].gid == 77


def test_cookies_grow_and_are_never_given_again(scene: Scene) -> None:
    def cookie(name: bytes) -> int:
        return scene.tree.directory(ROOT).entries[name].cookie

    scene.create(b"a")
    scene.create(b"b")
    assert (cookie(b"a"), cookie(b"b")) == (FIRST_COOKIE, FIRST_COOKIE + 1)
    scene.unlink(b"b")
    scene.create(b"b")
    assert cookie(b"b") == FIRST_COOKIE + 2


@pytest.mark.parametrize("name", [NAME_OF_255, b"\xff\xfe", b"\n", b" ", "Grüße".encode(), b"-rf"])
def test_names_are_any_bytes(scene: Scene, name: bytes) -> None:
    ino = scene.create(name)
    assert scene.listing() == {name: ino}


def test_creating_is_refused(scene: Scene) -> None:
    ino = scene.create(b"file")
    removed = scene.mkdir(b"removed")
    scene.open(removed)
    scene.rmdir(b"removed")
    with scene.refuses(errno.EEXIST):
        scene.create(b"file")
    with scene.refuses(errno.EEXIST):
        scene.mkdir(b"file")
    with scene.refuses(errno.ENAMETOOLONG):
        scene.create(NAME_OF_256)
    with scene.refuses(errno.ENOTDIR):
        scene.create(b"child", ino)
    with scene.refuses(errno.ENOENT):
        scene.create(b"child", removed)
    with scene.refuses(errno.ESTALE):
        scene.create(b"child", 99)


def test_a_link_is_another_name_of_the_same_inode(scene: Scene) -> None:
    ino, directory = scene.create(b"file"), scene.mkdir(b"dir")
    before, parent = scene[ino], scene[directory]
    change = scene.link(ino, b"other", directory)
    assert scene.listing() == {b"file": ino, b"dir": directory}
    assert scene.listing(directory) == {b"other": ino}
    assert scene[ino] == before._replace(nlink=2, ctime_ns=scene.now)
    assert scene[directory] == parent._replace(mtime_ns=scene.now, ctime_ns=scene.now)
    assert change.grows


@pytest.mark.parametrize("mode", [SYMLINK, FIFO])
def test_whatever_is_no_directory_can_be_linked(scene: Scene, mode: int) -> None:
    ino = scene.create(b"node", ROOT, NewInode(mode, UID, GID))
    scene.link(ino, b"other")
    assert scene[ino].nlink == 2


def test_linking_is_refused(scene: Scene) -> None:
    ino, directory, removed = scene.create(b"file"), scene.mkdir(b"dir"), scene.mkdir(b"removed")
    orphan = scene.create(b"orphan")
    scene.open(orphan)
    scene.open(removed)
    scene.unlink(b"orphan")
    scene.rmdir(b"removed")
    with scene.refuses(errno.EPERM):
        scene.link(directory, b"other")
    with scene.refuses(errno.EEXIST):
        scene.link(ino, b"file")
    with scene.refuses(errno.EEXIST):
        scene.link(ino, b"dir")
    with scene.refuses(errno.ENAMETOOLONG):
        scene.link(ino, NAME_OF_256)
    with scene.refuses(errno.ENOTDIR):
        scene.link(ino, b"other", ino)
    with scene.refuses(errno.ENOENT):
        scene.link(ino, b"other", removed)
    with scene.refuses(errno.ENOENT):
        scene.link(orphan, b"again")
    with scene.refuses(errno.ESTALE):
        scene.link(99, b"other")
    with scene.refuses(errno.ESTALE):
        scene.link(ino, b"other", 99)
