"""Renaming: moving, replacing and exchanging; links, times and places in listings; what is refused."""

import errno

import pytest

from tests.tree.scene import Scene
from vfsd.tree.change import ROOT, Change, DropEntry, DropInode, PutEntry, PutInode
from vfsd.tree.plan_names import RENAME_EXCHANGE, RENAME_NOREPLACE

NAME_OF_256 = b"n" * 256
WHITEOUT = 4


def cookies(scene: Scene, ino: int = ROOT) -> dict[bytes, int]:
    return {name: entry.cookie for name, entry in scene.tree.directory(ino).entries.items()}


@pytest.mark.parametrize("flags", [0, RENAME_NOREPLACE])
def test_a_file_takes_another_name(scene: Scene, flags: int) -> None:
    ino = scene.create(b"file")
    before = scene[ino]
    change = scene.rename((ROOT, b"file"), (ROOT, b"other"), flags)
    assert scene.listing() == {b"other": ino}
    assert scene[ino] == before._replace(ctime_ns=scene.now)
    assert scene.touched(ROOT) == (True, True)
    puts = (PutInode(ROOT, scene[ROOT]), PutInode(ino, scene[ino]))
    assert change == Change((*puts, DropEntry(ROOT, b"file"), PutEntry(ROOT, b"other", ino, 4)), grows=False)


def test_a_file_moves_between_directories_and_touches_both(scene: Scene) -> None:
    old, new, bystander = scene.mkdir(b"old"), scene.mkdir(b"new"), scene.mkdir(b"bystander")
    ino = scene.create(b"file", old)
    before = scene[ROOT], scene[bystander]
    scene.rename((old, b"file"), (new, b"file"))
    assert (scene.listing(old), scene.listing(new)) == ({}, {b"file": ino})
    assert scene.touched(old) == scene.touched(new) == (True, True)
    assert (scene[ROOT], scene[bystander]) == before
    assert (scene[old].nlink, scene[new].nlink) == (2, 2)


def test_a_directory_takes_its_link_along(scene: Scene) -> None:
    old, new = scene.mkdir(b"old"), scene.mkdir(b"new")
    moved = scene.mkdir(b"moved", old)
    inner = scene.mkdir(b"inner", moved)
    before = scene[moved]
    scene.rename((old, b"moved"), (new, b"moved"))
    assert (scene[old].nlink, scene[new].nlink) == (2, 3)
    assert scene[moved] == before._replace(ctime_ns=scene.now)
    assert scene.tree.directory(moved).parent == new
    assert scene.listing(moved) == {b"inner": inner}


def test_a_directory_renamed_in_place_leaves_the_links(scene: Scene) -> None:
    scene.mkdir(b"dir")
    scene.rename((ROOT, b"dir"), (ROOT, b"other"))
    assert scene[ROOT].nlink == 3


def test_a_file_replaces_another_in_its_place(scene: Scene) -> None:
    ino, replaced, _ = scene.create(b"new"), scene.create(b"file"), scene.create(b"last")
    places = cookies(scene)
    gone = scene[replaced]._replace(nlink=0)
    change = scene.rename((ROOT, b"new"), (ROOT, b"file"))
    assert scene.listing()[b"file"] == ino
    assert cookies(scene) == {b"file": places[b"file"], b"last": places[b"last"]}
    assert list(scene.listing()) == [b"file", b"last"]
    assert replaced not in scene.tree.inodes
    assert change.ops[-1] == DropInode(replaced, gone._replace(ctime_ns=scene.now))


def test_a_replaced_file_goes_on_for_who_has_it_open(scene: Scene) -> None:
    scene.create(b"new")
    replaced = scene.create(b"file")
    scene.write(replaced, 0, b"old content")
    scene.open(replaced)
    scene.rename((ROOT, b"new"), (ROOT, b"file"))
    assert scene.read(replaced) == b"old content"
    assert scene[replaced].nlink == 0


def test_a_replaced_file_keeps_its_other_names(scene: Scene) -> None:
    scene.create(b"new")
    replaced = scene.create(b"file")
    scene.link(replaced, b"other")
    scene.rename((ROOT, b"new"), (ROOT, b"file"))
    assert scene.listing()[b"other"] == replaced
    assert (scene[replaced].nlink, scene[replaced].ctime_ns) == (1, scene.now)


@pytest.mark.parametrize("same_parent", [True, False])
def test_a_directory_replaces_an_empty_one(scene: Scene, same_parent: bool) -> None:
    other = ROOT if same_parent else scene.mkdir(b"other")
    moved, replaced = scene.mkdir(b"moved"), scene.mkdir(b"replaced", other)
    inner = scene.create(b"inner", moved)
    links = scene[ROOT].nlink, scene[other].nlink
    scene.rename((ROOT, b"moved"), (other, b"replaced"))
    assert scene.listing(other) == {b"replaced": moved}
    assert scene.listing(moved) == {b"inner": inner}
    assert replaced not in scene.tree.inodes
    assert (scene[ROOT].nlink, scene[other].nlink) == (links[0] - 1, links[1] - same_parent)
    assert scene.tree.directory(moved).parent == other


@pytest.mark.parametrize("flags", [0, RENAME_EXCHANGE])
def test_two_names_of_one_inode_stay_as_they_are(scene: Scene, flags: int) -> None:
    ino = scene.create(b"file")
    scene.link(ino, b"other")
    before = scene[ino], scene[ROOT]
    assert scene.rename((ROOT, b"file"), (ROOT, b"other"), flags) == Change((), grows=False)
    assert scene.rename((ROOT, b"file"), (ROOT, b"file"), flags) == Change((), grows=False)
    assert scene.listing() == {b"file": ino, b"other": ino}
    assert (scene[ino], scene[ROOT]) == before


def test_two_files_are_exchanged_in_their_places(scene: Scene) -> None:
    one, two = scene.create(b"one"), scene.create(b"two")
    before, places = (scene[one], scene[two]), cookies(scene)
    change = scene.rename((ROOT, b"one"), (ROOT, b"two"), RENAME_EXCHANGE)
    assert scene.listing() == {b"one": two, b"two": one}
    assert cookies(scene) == places
    assert (scene[one], scene[two]) == tuple(one._replace(ctime_ns=scene.now) for one in before)
    assert scene.touched(ROOT) == (True, True)
    assert not change.grows


def test_a_directory_and_a_file_are_exchanged_between_directories(scene: Scene) -> None:
    left, right = scene.mkdir(b"left"), scene.mkdir(b"right")
    directory, file = scene.mkdir(b"name", left), scene.create(b"name", right)
    scene.rename((left, b"name"), (right, b"name"), RENAME_EXCHANGE)
    assert (scene.listing(left), scene.listing(right)) == ({b"name": file}, {b"name": directory})
    assert (scene[left].nlink, scene[right].nlink) == (2, 3)
    assert scene.tree.directory(directory).parent == right
    assert scene.touched(left) == scene.touched(right) == (True, True)


def test_two_full_directories_are_exchanged(scene: Scene) -> None:
    left, right = scene.mkdir(b"left"), scene.mkdir(b"right")
    one, two = scene.mkdir(b"one", left), scene.mkdir(b"two", right)
    scene.create(b"inner", one)
    scene.create(b"inner", two)
    scene.rename((left, b"one"), (right, b"two"), RENAME_EXCHANGE)
    assert (scene.listing(left), scene.listing(right)) == ({b"one": two}, {b"two": one})
    assert (scene[left].nlink, scene[right].nlink) == (3, 3)
    assert (scene.tree.directory(one).parent, scene.tree.directory(two).parent) == (right, left)


@pytest.mark.parametrize("flags", [WHITEOUT, RENAME_NOREPLACE | RENAME_EXCHANGE, WHITEOUT | RENAME_NOREPLACE, 8, -1])
def test_flags_nobody_knows_or_that_contradict_are_invalid(scene: Scene, flags: int) -> None:
    scene.create(b"file")
    with scene.refuses(errno.EINVAL):
        scene.rename((ROOT, b"file"), (ROOT, b"other"), flags)


def test_noreplace_refuses_whatever_is_there(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.link(ino, b"link")
    scene.mkdir(b"dir")
    for name in (b"file", b"link", b"dir"):
        with scene.refuses(errno.EEXIST):
            scene.rename((ROOT, b"file"), (ROOT, name), RENAME_NOREPLACE)


def test_exchange_needs_both(scene: Scene) -> None:
    scene.create(b"file")
    for source, target in ((b"file", b"nothing"), (b"nothing", b"file")):
        with scene.refuses(errno.ENOENT):
            scene.rename((ROOT, source), (ROOT, target), RENAME_EXCHANGE)


def test_a_directory_never_goes_below_itself(scene: Scene) -> None:
    outer = scene.mkdir(b"outer")
    inner = scene.mkdir(b"inner", outer)
    scene.create(b"file", inner)
    for target in ((outer, b"x"), (inner, b"x"), (inner, b"file")):
        with scene.refuses(errno.EINVAL):
            scene.rename((ROOT, b"outer"), target)
    with scene.refuses(errno.EINVAL):
        scene.rename((ROOT, b"outer"), (inner, b"file"), RENAME_EXCHANGE)
    with scene.refuses(errno.EINVAL):
        scene.rename((inner, b"file"), (ROOT, b"outer"), RENAME_EXCHANGE)
    with scene.refuses(errno.ENOTEMPTY):
        scene.rename((outer, b"inner"), (ROOT, b"outer"))


def test_kinds_that_do_not_replace_each_other(scene: Scene) -> None:
    scene.create(b"file")
    directory, full = scene.mkdir(b"dir"), scene.mkdir(b"full")
    scene.create(b"inner", full)
    with scene.refuses(errno.EISDIR):
        scene.rename((ROOT, b"file"), (ROOT, b"dir"))
    with scene.refuses(errno.ENOTDIR):
        scene.rename((ROOT, b"dir"), (ROOT, b"file"))
    with scene.refuses(errno.ENOTEMPTY):
        scene.rename((ROOT, b"dir"), (ROOT, b"full"))
    scene.rename((ROOT, b"full"), (ROOT, b"dir"))
    assert directory not in scene.tree.inodes


def test_places_that_are_no_places(scene: Scene) -> None:
    ino, removed = scene.create(b"file"), scene.mkdir(b"removed")
    scene.open(removed)
    scene.rmdir(b"removed")
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
            with scene.refuses(number):
                scene.rename(source, target, flags)
