"""Taking names away: unlink and rmdir; links counted, times set, what is refused."""

import errno

from tests.tree.planned_tree import PlannedTree
from vfsd.tree.change import ROOT, Change, DropEntry, DropInode, PutInode

NAME_OF_256 = b"n" * 256


def test_the_last_name_takes_the_inode_with_it(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    before = planned[ino]
    change = planned.unlink(b"file")
    gone = before._replace(nlink=0, ctime_ns=planned.now)
    assert change == Change(
        (PutInode(ROOT, planned[ROOT]), DropEntry(ROOT, b"file"), DropInode(ino, gone)), grows=False
    )
    assert planned.listing() == {}
    assert planned.touched(ROOT) == (True, True)


def test_another_name_keeps_the_inode(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.link(ino, b"other")
    before = planned[ino]
    change = planned.unlink(b"file")
    assert planned.listing() == {b"other": ino}
    assert planned[ino] == before._replace(nlink=1, ctime_ns=planned.now)
    assert not [op for op in change.ops if isinstance(op, DropInode)]


def test_an_open_file_shows_no_links(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, 0, b"data")
    planned.open(ino)
    before = planned[ino]
    planned.unlink(b"file")
    assert planned[ino] == before._replace(nlink=0, ctime_ns=planned.now)
    assert planned.read(ino) == b"data"


def test_unlinking_is_refused(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.mkdir(b"dir")
    with planned.refuses(errno.ENOENT):
        planned.unlink(b"nothing")
    with planned.refuses(errno.EISDIR):
        planned.unlink(b"dir")
    with planned.refuses(errno.ENOTDIR):
        planned.unlink(b"child", ino)
    with planned.refuses(errno.ENAMETOOLONG):
        planned.unlink(NAME_OF_256)
    with planned.refuses(errno.ESTALE):
        planned.unlink(b"file", 99)


def test_an_empty_directory_goes_and_gives_its_link_back(planned: PlannedTree) -> None:
    ino = planned.mkdir(b"dir")
    assert planned[ROOT].nlink == 3
    gone = planned[ino]._replace(nlink=0)
    change = planned.rmdir(b"dir")
    assert planned[ROOT].nlink == 2
    assert ino not in planned.tree.inodes
    assert planned.touched(ROOT) == (True, True)
    assert not change.grows
    assert change.ops[-1] == DropInode(ino, gone._replace(ctime_ns=planned.now))


def test_a_directory_that_is_in_use_has_no_links_and_takes_no_names(planned: PlannedTree) -> None:
    ino = planned.mkdir(b"dir")
    planned.open(ino)
    planned.rmdir(b"dir")
    assert planned[ino].nlink == 0
    assert planned.listing(ino) == {}
    with planned.refuses(errno.ENOENT):
        planned.mkdir(b"child", ino)
    with planned.refuses(errno.ENOENT):
        planned.unlink(b"child", ino)
    with planned.refuses(errno.ENOENT):
        planned.rmdir(b"child", ino)
    planned.setattr(ino, mode=0o700)
    assert planned[ino].nlink == 0
    planned.forget(ino)
    assert ino not in planned.tree.inodes


def test_a_directory_can_be_removed_once_it_has_been_emptied(planned: PlannedTree) -> None:
    ino = planned.mkdir(b"dir")
    inner = planned.mkdir(b"inner", ino)
    assert planned[ino].nlink == 3
    planned.create(b"file", inner)
    with planned.refuses(errno.ENOTEMPTY):
        planned.rmdir(b"inner", ino)
    with planned.refuses(errno.ENOTEMPTY):
        planned.rmdir(b"dir")
    planned.unlink(b"file", inner)
    planned.rmdir(b"inner", ino)
    assert planned[ino].nlink == 2
    planned.rmdir(b"dir")
    assert list(planned.tree.inodes) == [ROOT]


def test_removing_a_directory_is_refused(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    with planned.refuses(errno.ENOENT):
        planned.rmdir(b"nothing")
    with planned.refuses(errno.ENOTDIR):
        planned.rmdir(b"file")
    with planned.refuses(errno.ENOTDIR):
        planned.rmdir(b"child", ino)
    with planned.refuses(errno.ENAMETOOLONG):
        planned.rmdir(NAME_OF_256)
    with planned.refuses(errno.ESTALE):
        planned.rmdir(b"dir", 99)
