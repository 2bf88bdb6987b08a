"""Renaming: moving, replacing and exchanging; links, times and cookies; what is refused."""

import errno
import stat

import pytest

from tests.tree.planned_tree import DIRECTORY, GID, PlannedTree
from vfsd.tree.change import ROOT, Change, DropEntry, DropInode, PutEntry, PutInode
from vfsd.tree.plan_names import RENAME_EXCHANGE, RENAME_NOREPLACE, RENAME_WHITEOUT, Whiteout

NAME_OF_256 = b"n" * 256


def cookies(planned: PlannedTree, ino: int = ROOT) -> dict[bytes, int]:
    return {name: entry.cookie for name, entry in planned.tree.directory(ino).entries.items()}


@pytest.mark.parametrize("flags", [0, RENAME_NOREPLACE])
def test_a_file_takes_another_name(planned: PlannedTree, flags: int) -> None:
    ino = planned.create(b"file")
    before = planned[ino]
    change = planned.rename((ROOT, b"file"), (ROOT, b"other"), flags)
    assert planned.listing() == {b"other": ino}
    assert planned[ino] == before._replace(ctime_ns=planned.now)
    assert planned.touched(ROOT) == (True, True)
    puts = (PutInode(ROOT, planned[ROOT]), PutInode(ino, planned[ino]))
    assert change == Change((*puts, DropEntry(ROOT, b"file"), PutEntry(ROOT, b"other", ino, 4)), grows=False)


def test_a_file_moves_between_directories_and_touches_both(planned: PlannedTree) -> None:
    old, new, bystander = planned.mkdir(b"old"), planned.mkdir(b"new"), planned.mkdir(b"bystander")
    ino = planned.create(b"file", old)
    before = planned[ROOT], planned[bystander]
    planned.rename((old, b"file"), (new, b"file"))
    assert (planned.listing(old), planned.listing(new)) == ({}, {b"file": ino})
    assert planned.touched(old) == planned.touched(new) == (True, True)
    assert (planned[ROOT], planned[bystander]) == before
    assert (planned[old].nlink, planned[new].nlink) == (2, 2)


def test_a_directory_takes_its_link_along(planned: PlannedTree) -> None:
    old, new = planned.mkdir(b"old"), planned.mkdir(b"new")
    moved = planned.mkdir(b"moved", old)
    inner = planned.mkdir(b"inner", moved)
    before = planned[moved]
    planned.rename((old, b"moved"), (new, b"moved"))
    assert (planned[old].nlink, planned[new].nlink) == (2, 3)
    assert planned[moved] == before._replace(ctime_ns=planned.now)
    assert planned.tree.directory(moved).parent == new
    assert planned.listing(moved) == {b"inner": inner}


def test_a_directory_renamed_in_place_leaves_the_links(planned: PlannedTree) -> None:
    planned.mkdir(b"dir")
    planned.rename((ROOT, b"dir"), (ROOT, b"other"))
    assert planned[ROOT].nlink == 3


def test_a_file_replaces_another_and_takes_over_its_cookie(planned: PlannedTree) -> None:
    ino, replaced, _ = planned.create(b"new"), planned.create(b"file"), planned.create(b"last")
    cookies_before = cookies(planned)
    gone = planned[replaced]._replace(nlink=0)
    change = planned.rename((ROOT, b"new"), (ROOT, b"file"))
    assert planned.listing()[b"file"] == ino
    assert cookies(planned) == {b"file": cookies_before[b"file"], b"last": cookies_before[b"last"]}
    assert list(planned.listing()) == [b"file", b"last"]
    assert replaced not in planned.tree.inodes
    assert change.ops[-1] == DropInode(replaced, gone._replace(ctime_ns=planned.now))


def test_a_replaced_file_stays_for_a_program_that_has_it_open(planned: PlannedTree) -> None:
    planned.create(b"new")
    replaced = planned.create(b"file")
    planned.write(replaced, 0, b"old content")
    planned.open(replaced)
    planned.rename((ROOT, b"new"), (ROOT, b"file"))
    assert planned.read(replaced) == b"old content"
    assert planned[replaced].nlink == 0


def test_a_replaced_file_keeps_its_other_names(planned: PlannedTree) -> None:
    planned.create(b"new")
    replaced = planned.create(b"file")
    planned.link(replaced, b"other")
    planned.rename((ROOT, b"new"), (ROOT, b"file"))
    assert planned.listing()[b"other"] == replaced
    assert (planned[replaced].nlink, planned[replaced].ctime_ns) == (1, planned.now)


@pytest.mark.parametrize("same_parent", [True, False])
def test_a_directory_replaces_an_empty_one(planned: PlannedTree, same_parent: bool) -> None:
    other = ROOT if same_parent else planned.mkdir(b"other")
    moved, replaced = planned.mkdir(b"moved"), planned.mkdir(b"replaced", other)
    inner = planned.create(b"inner", moved)
    links = planned[ROOT].nlink, planned[other].nlink
    planned.rename((ROOT, b"moved"), (other, b"replaced"))
    assert planned.listing(other) == {b"replaced": moved}
    assert planned.listing(moved) == {b"inner": inner}
    assert replaced not in planned.tree.inodes
    assert (planned[ROOT].nlink, planned[other].nlink) == (links[0] - 1, links[1] - same_parent)
    assert planned.tree.directory(moved).parent == other


@pytest.mark.parametrize("flags", [0, RENAME_EXCHANGE])
def test_two_names_of_one_inode_stay_as_they_are(planned: PlannedTree, flags: int) -> None:
    ino = planned.create(b"file")
    planned.link(ino, b"other")
    before = planned[ino], planned[ROOT]
    assert planned.rename((ROOT, b"file"), (ROOT, b"other"), flags) == Change((), grows=False)
    assert planned.rename((ROOT, b"file"), (ROOT, b"file"), flags) == Change((), grows=False)
    assert planned.listing() == {b"file": ino, b"other": ino}
    assert (planned[ino], planned[ROOT]) == before


def test_two_files_are_exchanged_and_keep_their_cookies(planned: PlannedTree) -> None:
    one, two = planned.create(b"one"), planned.create(b"two")
    before, cookies_before = (planned[one], planned[two]), cookies(planned)
    change = planned.rename((ROOT, b"one"), (ROOT, b"two"), RENAME_EXCHANGE)
    assert planned.listing() == {b"one": two, b"two": one}
    assert cookies(planned) == cookies_before
    assert (planned[one], planned[two]) == tuple(one._replace(ctime_ns=planned.now) for one in before)
    assert planned.touched(ROOT) == (True, True)
    assert not change.grows


def test_a_directory_and_a_file_are_exchanged_between_directories(planned: PlannedTree) -> None:
    left, right = planned.mkdir(b"left"), planned.mkdir(b"right")
    directory, file = planned.mkdir(b"name", left), planned.create(b"name", right)
    planned.rename((left, b"name"), (right, b"name"), RENAME_EXCHANGE)
    assert (planned.listing(left), planned.listing(right)) == ({b"name": file}, {b"name": directory})
    assert (planned[left].nlink, planned[right].nlink) == (2, 3)
    assert planned.tree.directory(directory).parent == right
    assert planned.touched(left) == planned.touched(right) == (True, True)


def test_two_full_directories_are_exchanged(planned: PlannedTree) -> None:
    left, right = planned.mkdir(b"left"), planned.mkdir(b"right")
    one, two = planned.mkdir(b"one", left), planned.mkdir(b"two", right)
    planned.create(b"inner", one)
    planned.create(b"inner", two)
    planned.rename((left, b"one"), (right, b"two"), RENAME_EXCHANGE)
    assert (planned.listing(left), planned.listing(right)) == ({b"one": two}, {b"two": one})
    assert (planned[left].nlink, planned[right].nlink) == (3, 3)
    assert (planned.tree.directory(one).parent, planned.tree.directory(two).parent) == (right, left)


@pytest.mark.parametrize("flags", [RENAME_NOREPLACE | RENAME_EXCHANGE, RENAME_WHITEOUT | RENAME_EXCHANGE, 8, 12, -1])
def test_flags_nobody_knows_or_that_contradict_are_invalid(planned: PlannedTree, flags: int) -> None:
    planned.create(b"file")
    with planned.refuses(errno.EINVAL):
        planned.rename((ROOT, b"file"), (ROOT, b"other"), flags)


@pytest.mark.parametrize("flags", [RENAME_WHITEOUT, RENAME_WHITEOUT | RENAME_NOREPLACE])
@pytest.mark.parametrize("same_parent", [True, False])
@pytest.mark.parametrize("is_directory", [True, False])
def test_a_whiteout_stays_at_the_source(
    planned: PlannedTree, flags: int, same_parent: bool, is_directory: bool
) -> None:
    parent = planned.mkdir(b"parent", mode=DIRECTORY | 0o2000)
    target = parent if same_parent else ROOT
    moved = planned.mkdir(b"moved", parent) if is_directory else planned.create(b"moved", parent)
    ino = planned.tree.allocate()
    change = planned.rename((parent, b"moved"), (target, b"target"), flags, Whiteout(ino, 7, 8))
    assert planned.listing(parent) == {b"moved": ino, **({b"target": moved} if same_parent else {})}
    assert planned.listing(target)[b"target"] == moved
    assert change.grows
    left = planned[ino]
    assert (left.mode, left.rdev, left.nlink) == (stat.S_IFCHR, 0, 1)
    assert (left.uid, left.gid) == (7, GID)  # the group is inherited from a set-group-ID directory
    assert left.mtime_ns == left.ctime_ns == planned[parent].mtime_ns == planned.now
    assert planned[parent].nlink == (3 if same_parent and is_directory else 2)


def test_a_whiteout_replaces_a_file_at_the_target(planned: PlannedTree) -> None:
    moved, replaced = planned.create(b"moved"), planned.create(b"target")
    ino = planned.tree.allocate()
    planned.rename((ROOT, b"moved"), (ROOT, b"target"), RENAME_WHITEOUT, Whiteout(ino, 0, 0))
    assert planned.listing() == {b"moved": ino, b"target": moved}
    assert replaced not in planned.tree.inodes


def test_noreplace_refuses_any_existing_target(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.link(ino, b"link")
    planned.mkdir(b"dir")
    for name in (b"file", b"link", b"dir"):
        with planned.refuses(errno.EEXIST):
            planned.rename((ROOT, b"file"), (ROOT, name), RENAME_NOREPLACE)


def test_exchange_needs_both(planned: PlannedTree) -> None:
    planned.create(b"file")
    for source, target in ((b"file", b"nothing"), (b"nothing", b"file")):
        with planned.refuses(errno.ENOENT):
            planned.rename((ROOT, source), (ROOT, target), RENAME_EXCHANGE)


def test_a_directory_never_goes_below_itself(planned: PlannedTree) -> None:
    outer = planned.mkdir(b"outer")
    inner = planned.mkdir(b"inner", outer)
    planned.create(b"file", inner)
    for target in ((outer, b"x"), (inner, b"x"), (inner, b"file")):
        with planned.refuses(errno.EINVAL):
            planned.rename((ROOT, b"outer"), target)
    with planned.refuses(errno.EINVAL):
        planned.rename((ROOT, b"outer"), (inner, b"file"), RENAME_EXCHANGE)
    with planned.refuses(errno.EINVAL):
        planned.rename((inner, b"file"), (ROOT, b"outer"), RENAME_EXCHANGE)
    with planned.refuses(errno.ENOTEMPTY):
        planned.rename((outer, b"inner"), (ROOT, b"outer"))


def test_kinds_that_do_not_replace_each_other(planned: PlannedTree) -> None:
    planned.create(b"file")
    directory, full = planned.mkdir(b"dir"), planned.mkdir(b"full")
    planned.create(b"inner", full)
    with planned.refuses(errno.EISDIR):
        planned.rename((ROOT, b"file"), (ROOT, b"dir"))
    with planned.refuses(errno.ENOTDIR):
        planned.rename((ROOT, b"dir"), (ROOT, b"file"))
    with planned.refuses(errno.ENOTEMPTY):
        planned.rename((ROOT, b"dir"), (ROOT, b"full"))
    planned.rename((ROOT, b"full"), (ROOT, b"dir"))
    assert directory not in planned.tree.inodes


def test_keys_that_cannot_exist(planned: PlannedTree) -> None:
    ino, removed = planned.create(b"file"), planned.mkdir(b"removed")
    planned.open(removed)
    planned.rmdir(b"removed")
    here = (ROOT, b"file")
    for number, source, target in (
        (errno.ENOENT, (ROOT, b"nothing"), (ROOT, b"x")),
        (errno.ENOENT, here, (removed, b"x")),
        (errno.ENOENT, (removed, b"x"), here),
        (errno.ENOTDIR, here, (ino, b"x")),
        (errno.ENOTDIR, (ino, b"x"), here),
        (errno.ENAMETOOLONG, here, (ROOT, NAME_OF_256)),
        (errno.ENAMETOOLONG, (ROOT, NAME_OF_256), here),
        (errno.ESTALE, here, (99, b"x")),
        (errno.ESTALE, (99, b"x"), here),
    ):
        for flags in (0, RENAME_NOREPLACE, RENAME_EXCHANGE):
            with planned.refuses(number):
                planned.rename(source, target, flags)
