"""Taking names away: unlink and rmdir; links counted, times set, what is refused."""

import errno

from tests.tree.scene import Scene
from vfsd.tree.change import ROOT, Change, DropEntry, DropInode, PutInode

NAME_OF_256 = b"n" * 256


def test_the_last_name_takes_the_inode_with_it(scene: Scene) -> None:
    ino = scene.create(b"file")
    before = scene[ino]
    change = scene.unlink(b"file")
    gone = before._replace(nlink=0, ctime_ns=scene.now)
    assert change == Change((PutInode(ROOT, scene[ROOT]), DropEntry(ROOT, b"file"), DropInode(ino, gone)), grows=False)
    assert scene.listing() == {}
    assert scene.touched(ROOT) == (True, True)


def test_another_name_keeps_the_inode(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.link(ino, b"other")
    before = scene[ino]
    change = scene.unlink(b"file")
    assert scene.listing() == {b"other": ino}
    assert scene[ino] == before._replace(nlink=1, ctime_ns=scene.now)
    assert not [op for op in change.ops if isinstance(op, DropInode)]


def test_an_open_file_shows_no_links(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.write(ino, 0, b"data")
    scene.open(ino)
    before = scene[ino]
    scene.unlink(b"file")
    assert scene[ino] == before._replace(nlink=0, ctime_ns=scene.now)
    assert scene.read(ino) == b"data"


def test_unlinking_is_refused(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.mkdir(b"dir")
    with scene.refuses(errno.ENOENT):
        scene.unlink(b"nothing")
    with scene.refuses(errno.EISDIR):
        scene.unlink(b"dir")
    with scene.refuses(errno.ENOTDIR):
        scene.unlink(b"child", ino)
    with scene.refuses(errno.ENAMETOOLONG):
        scene.unlink(NAME_OF_256)
    with scene.refuses(errno.ESTALE):
        scene.unlink(b"file", 99)


def test_an_empty_directory_goes_and_gives_its_link_back(scene: Scene) -> None:
    ino = scene.mkdir(b"dir")
    assert scene[ROOT].nlink == 3
    gone = scene[ino]._replace(nlink=0)
    change = scene.rmdir(b"dir")
    assert scene[ROOT].nlink == 2
    assert ino not in scene.tree.inodes
    assert scene.touched(ROOT) == (True, True)
    assert not change.grows
    assert change.ops[-1] == DropInode(ino, gone._replace(ctime_ns=scene.now))


def test_a_directory_that_is_in_use_has_no_links_and_takes_no_names(scene: Scene) -> None:
    ino = scene.mkdir(b"dir")
    scene.open(ino)
    scene.rmdir(b"dir")
    assert scene[ino].nlink == 0
    assert scene.listing(ino) == {}
    with scene.refuses(errno.ENOENT):
        scene.mkdir(b"child", ino)
    with scene.refuses(errno.ENOENT):
        scene.unlink(b"child", ino)
    with scene.refuses(errno.ENOENT):
        scene.rmdir(b"child", ino)
    scene.setattr(ino, mode=0o700)
    assert scene[ino].nlink == 0
    scene.forget(ino)
    assert ino not in scene.tree.inodes


def test_a_directory_can_be_removed_once_it_has_been_emptied(scene: Scene) -> None:
    ino = scene.mkdir(b"dir")
    inner = scene.mkdir(b"inner", ino)
    assert scene[ino].nlink == 3
    scene.create(b"file", inner)
    with scene.refuses(errno.ENOTEMPTY):
        scene.rmdir(b"inner", ino)
    with scene.refuses(errno.ENOTEMPTY):
        scene.rmdir(b"dir")
    scene.unlink(b"file", inner)
    scene.rmdir(b"inner", ino)
    assert scene[ino].nlink == 2
    scene.rmdir(b"dir")
    assert list(scene.tree.inodes) == [ROOT]


def test_removing_a_directory_is_refused(scene: Scene) -> None:
    ino = scene.create(b"file")
    with scene.refuses(errno.ENOENT):
        scene.rmdir(b"nothing")
    with scene.refuses(errno.ENOTDIR):
        scene.rmdir(b"file")
    with scene.refuses(errno.ENOTDIR):
        scene.rmdir(b"child", ino)
    with scene.refuses(errno.ENAMETOOLONG):
        scene.rmdir(NAME_OF_256)
    with scene.refuses(errno.ESTALE):
        scene.rmdir(b"dir", 99)
