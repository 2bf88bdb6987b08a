"""The tree itself: finding, applying, replaying, orphans and their end, and the order of a listing."""

import errno

import pytest

from tests.tree.planned_tree import BEGINNING, DIRECTORY, FILE, PlannedTree, new_tree, picture
from tests.tree.rebuild import check_indexes
from vfsd.tree.change import ROOT, Attributes, DropChunks, DropEntry, DropInode, Op, PutChunks, PutEntry, PutInode
from vfsd.tree.inode import FIRST_COOKIE, Directory, Entry
from vfsd.tree.plan_attributes import NewAttributes, plan_setattr
from vfsd.tree.plan_content import plan_write
from vfsd.tree.tree import MILLISECOND, Tree

PLAIN = Attributes(FILE, 1, 0, 0, 0, 0, 1, 1, 1)


def test_a_number_that_is_gone_is_stale(planned: PlannedTree) -> None:
    for ask in (planned.tree.inode, planned.tree.directory, lambda ino: planned.tree.child(ino, b"name")):
        with planned.refuses(errno.ESTALE):
            ask(99)


def test_only_a_directory_has_names(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    with planned.refuses(errno.ENOTDIR):
        planned.tree.directory(ino)
    with planned.refuses(errno.ENOTDIR):
        planned.tree.child(ino, b"name")


def test_a_child_is_the_inode_or_nothing(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    assert planned.tree.child(ROOT, b"file") is planned.tree.inode(ino)
    assert planned.tree.child(ROOT, b"other") is None


def test_what_lies_below_follows_a_directory_that_moves(planned: PlannedTree) -> None:
    outer, other = planned.mkdir(b"outer"), planned.mkdir(b"other")
    inner = planned.mkdir(b"inner", outer)
    assert planned.tree.directory(inner).parent == outer
    assert planned.tree.is_below(inner, outer)
    assert planned.tree.is_below(inner, inner)
    assert planned.tree.is_below(inner, ROOT)
    assert not planned.tree.is_below(outer, inner)
    planned.rename((outer, b"inner"), (other, b"inner"))
    assert not planned.tree.is_below(inner, outer)
    assert planned.tree.is_below(inner, other)


def test_numbers_are_never_given_twice(planned: PlannedTree) -> None:
    first = planned.tree.allocate()
    assert first == ROOT + 1
    assert planned.tree.allocate() == first + 1
    planned.tree.replay([PutInode(40, PLAIN), PutInode(7, PLAIN)])
    assert planned.tree.allocate() == 41


def test_putting_and_dropping_chunks_keeps_count_of_the_bytes() -> None:
    tree = new_tree()
    tree.replay([PutInode(2, PLAIN), PutChunks(2, {0: b"abc", 4: b"de"})])
    assert tree.content_bytes == 5
    tree.replay([PutChunks(2, {0: b"a"})])
    assert tree.content_bytes == 3
    tree.replay([DropChunks(2, (4, 9))])
    assert (tree.content_bytes, tree.inode(2).chunks) == (1, {0: b"a"})
    tree.replay([DropChunks(2, None)])
    assert (tree.content_bytes, tree.inode(2).chunks) == (0, {})


@pytest.mark.parametrize(
    "op",
    [
        PutInode(2, PLAIN._replace(uid=5)),
        PutEntry(ROOT, b"new", 2, 9),
        PutEntry(ROOT, b"file", 2, 3),
        DropEntry(ROOT, b"file"),
        PutChunks(2, {0: b"b", 1: b"c"}),
        DropChunks(2, (0,)),
        DropChunks(2, None),
        DropInode(2, PLAIN._replace(nlink=0)),
    ],
    ids=str,
)
def test_an_operation_applied_twice_is_harmless(op: Op) -> None:
    tree = new_tree()
    tree.replay([PutInode(2, PLAIN), PutEntry(ROOT, b"file", 2, 3), PutChunks(2, {0: b"a"})])
    tree.replay([op])
    once = picture(tree), tree.content_bytes, tree.next_ino
    tree.replay([op])
    assert (picture(tree), tree.content_bytes, tree.next_ino) == once


def test_a_file_nobody_knows_goes_with_its_last_name(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, 0, b"data")
    planned.unlink(b"file")
    assert ino not in planned.tree.inodes
    assert planned.tree.content_bytes == 0


def test_an_open_file_outlives_its_last_name_until_it_is_forgotten(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, 0, b"data")
    planned.open(ino)
    planned.open(ino)
    planned.unlink(b"file")
    assert planned.tree.inode(ino).is_orphan
    planned.forget(ino)
    assert planned.read(ino) == b"data"
    assert planned.tree.content_bytes == 4
    planned.forget(ino)
    assert ino not in planned.tree.inodes
    assert planned.tree.content_bytes == 0


def test_forgetting_leaves_what_still_has_a_name(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.open(ino)
    planned.forget(ino)
    assert planned.tree.child(ROOT, b"file") is planned.tree.inode(ino)
    planned.tree.discard_if_unused(99)


def test_dropping_what_memory_never_knew_leaves_nothing() -> None:
    tree = new_tree()
    tree.replay([DropInode(5, PLAIN._replace(nlink=0))])
    assert list(tree.inodes) == [ROOT]


def test_a_replay_in_the_order_of_a_store_gives_names_parents_and_cookies() -> None:
    tree = Tree()
    directory = PLAIN._replace(mode=DIRECTORY, nlink=2)
    tree.replay([PutInode(3, directory), PutInode(2, PLAIN), PutInode(ROOT, directory._replace(nlink=3))])
    tree.replay([PutChunks(2, {1: b"x"}), PutEntry(3, b"late", 2, 5), PutEntry(ROOT, b"sub", 3, 8)])
    assert tree.directory(3).parent == ROOT
    assert tree.directory(ROOT).parent == ROOT
    assert tree.directory(3).next_cookie == 6
    assert tree.directory(ROOT).next_cookie == 9
    assert tree.next_ino == 4


def test_a_time_counts_as_seen_for_as_long_as_its_millisecond_lasts(planned: PlannedTree) -> None:
    """A reader may look between planning and applying: what it saw must not be taken for unseen."""
    ino = planned.create(b"file")
    last = planned[ino].mtime_ns
    planned.tree.inode(ino).shown = True
    planned.tree.apply(plan_write(planned.tree, ino, 0, b"one", last + 100))
    assert planned.tree.inode(ino).shown
    planned.tree.apply(plan_write(planned.tree, ino, 0, b"two", last + 2 * MILLISECOND))
    assert not planned.tree.inode(ino).shown


def test_other_attributes_leave_the_time_seen(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.tree.inode(ino).shown = True
    planned.tree.apply(plan_setattr(planned.tree, ino, NewAttributes(mode=0o600), BEGINNING))
    assert planned.tree.inode(ino).shown


def listing_after(directory: Directory, cookie: int) -> list[bytes]:
    return [name for name, _ in directory.newer_than(cookie)][::-1]


def test_a_listing_is_what_has_a_greater_cookie() -> None:
    directory = Directory(ROOT)
    for number, name in enumerate((b"a", b"b", b"c")):
        directory.put(name, Entry(10 + number, directory.next_cookie))
    assert [entry.cookie for entry in directory.entries.values()] == [FIRST_COOKIE, FIRST_COOKIE + 1, FIRST_COOKIE + 2]
    assert listing_after(directory, 0) == [b"a", b"b", b"c"]
    assert listing_after(directory, FIRST_COOKIE) == [b"b", b"c"]
    assert listing_after(directory, FIRST_COOKIE + 2) == []


def test_a_reader_keeps_its_position_while_names_come_and_go() -> None:
    directory = Directory(ROOT)
    for name in (b"a", b"b", b"c"):
        directory.put(name, Entry(10, directory.next_cookie))
    read_so_far = directory.entries[b"b"].cookie
    directory.drop(b"a")
    directory.drop(b"b")
    directory.drop(b"b")
    directory.put(b"b", Entry(11, directory.next_cookie))
    assert listing_after(directory, read_so_far) == [b"c", b"b"]


def test_a_name_that_leads_to_another_inode_keeps_its_cookie() -> None:
    directory = Directory(ROOT)
    for name in (b"a", b"b"):
        directory.put(name, Entry(10, directory.next_cookie))
    directory.put(b"a", Entry(12, directory.entries[b"a"].cookie))
    assert listing_after(directory, 0) == [b"a", b"b"]
    assert directory.entries[b"a"].ino == 12
    assert directory.next_cookie == FIRST_COOKIE + 2


def test_the_cookie_of_a_name_that_went_is_never_given_again() -> None:
    directory = Directory(ROOT)
    directory.put(b"a", Entry(10, directory.next_cookie))
    directory.drop(b"a")
    assert directory.next_cookie == FIRST_COOKIE + 1


def test_what_an_inode_knows_of_its_names_does_not_grow_with_their_number(planned: PlannedTree) -> None:
    """With a list of all names each further name would cost as much as all before it."""
    ino, other = planned.create(b"file"), planned.mkdir(b"other")
    for number in range(100):
        planned.link(ino, b"name %d" % number)
        planned.link(ino, b"name %d" % number, parent=other)
    parents = planned.tree.inode(ino).parents
    assert set(parents) == {ROOT, other}
    check_indexes(planned.tree)
    for number in range(100):
        planned.unlink(b"name %d" % number)
        planned.unlink(b"name %d" % number, parent=other)
        check_indexes(planned.tree)
    assert planned.tree.inode(ino).parents is planned.tree.directory(ROOT).as_parents


def test_the_last_name_may_be_in_any_of_the_directories(planned: PlannedTree) -> None:
    ino, other = planned.create(b"file"), planned.mkdir(b"other")
    planned.link(ino, b"file", parent=other)
    planned.unlink(b"file")
    assert planned.tree.inode(ino).parents is planned.tree.directory(other).as_parents
