"""Planning attributes: chmod, chown, utimens, truncate in all combinations, and extended attributes."""

import errno
import itertools
import stat
from typing import Any

import pytest

from tests.tree.scene import BEGINNING, DIRECTORY, FIFO, GID, SECOND, SYMLINK, UID, Scene
from vfsd.tree.change import CHUNK_SIZE, ROOT, Change, DropChunks, DropInode, PutChunks, PutInode
from vfsd.tree.inode import MILLISECOND
from vfsd.tree.plan_attributes import XATTRS_MAX, NewAttributes, plan_setattr
from vfsd.tree.plan_names import EntryKey, NewInode, plan_create

FIELDS = {"mode": 0o4751, "uid": 5, "gid": 6, "atime_ns": 11, "mtime_ns": -12, "size": 3}


def test_a_mode_replaces_twelve_bits_and_no_more(scene: Scene) -> None:
    ino = scene.create(b"file")
    before = scene[ino]
    change = scene.setattr(ino, mode=stat.S_IFDIR | 0o7751)
    assert scene[ino] == before._replace(mode=stat.S_IFREG | 0o7751, ctime_ns=scene.now)
    assert change == Change((PutInode(ino, scene[ino]),), grows=False)


def test_owner_and_group_change_alone(scene: Scene) -> None:
    ino = scene.create(b"file")
    before = scene[ino]
    scene.setattr(ino, uid=0)
    assert scene[ino] == before._replace(uid=0, ctime_ns=scene.now)
    scene.setattr(ino, gid=2**32 - 2)
    assert scene[ino] == before._replace(uid=0, gid=2**32 - 2, ctime_ns=scene.now)


def test_times_are_set_to_the_nanosecond(scene: Scene) -> None:
    ino = scene.create(b"file")
    before = scene[ino]
    scene.setattr(ino, atime_ns=123_456_789_012_345_678, mtime_ns=-1)
    assert scene[ino] == before._replace(atime_ns=123_456_789_012_345_678, mtime_ns=-1, ctime_ns=scene.now)
    scene.setattr(ino, atime_ns=0)
    assert scene[ino] == before._replace(atime_ns=0, mtime_ns=-1, ctime_ns=scene.now)


@pytest.mark.parametrize(("asked", "kept"), [(2**70, 2**63 - 1), (-(2**70), -(2**63 - 1)), (2**63 - 1, 2**63 - 1)])
def test_times_are_held_to_what_can_be_stored(scene: Scene, asked: int, kept: int) -> None:
    ino = scene.create(b"file")
    scene.setattr(ino, atime_ns=asked, mtime_ns=asked)
    assert (scene[ino].atime_ns, scene[ino].mtime_ns) == (kept, kept)


@pytest.mark.parametrize(
    "names", [names for count in range(7) for names in itertools.combinations(FIELDS, count)], ids=" ".join
)
def test_any_combination_is_one_change(scene: Scene, names: tuple[str, ...]) -> None:
    ino = scene.create(b"file")
    scene.write(ino, 0, b"hello")
    fields: dict[str, Any] = {name: FIELDS[name] for name in names}
    expected = scene[ino]._replace(ctime_ns=scene.now + SECOND)
    if "size" in fields:
        expected = expected._replace(mtime_ns=scene.now + SECOND)
    expected = expected._replace(**fields)
    if "mode" in fields:
        expected = expected._replace(mode=stat.S_IFREG | fields["mode"])
    change = scene.setattr(ino, **fields)
    assert scene[ino] == expected
    assert change.ops[0] == PutInode(ino, expected)
    assert scene.read(ino) == b"hello"[: expected.size]


@pytest.mark.parametrize("mode", [DIRECTORY, SYMLINK, FIFO, stat.S_IFSOCK | 0o600, stat.S_IFBLK | 0o600])
def test_every_kind_has_attributes_but_only_files_have_a_length(scene: Scene, mode: int) -> None:
    ino = scene.create(b"node", ROOT, NewInode(mode, UID, GID))
    scene.setattr(ino, mode=0o1234, uid=3, mtime_ns=4)
    assert (scene[ino].mode, scene[ino].uid, scene[ino].mtime_ns) == (stat.S_IFMT(mode) | 0o1234, 3, 4)
    for size in (0, 5):
        with scene.refuses(errno.EISDIR if mode == DIRECTORY else errno.EINVAL):
            scene.setattr(ino, size=size, mode=0o777)


def test_shortening_cuts_content_for_good(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.write(ino, 0, b"x" * (2 * CHUNK_SIZE + 10))
    change = scene.setattr(ino, size=CHUNK_SIZE + 1)
    assert change.ops == (PutInode(ino, scene[ino]), PutChunks(ino, {1: b"x"}), DropChunks(ino, (2,)))
    assert not change.grows
    assert scene.touched(ino) == (True, True)
    scene.setattr(ino, size=3 * CHUNK_SIZE)
    assert scene.read(ino) == b"x" * (CHUNK_SIZE + 1) + bytes(2 * CHUNK_SIZE - 1)
    assert scene.tree.content_bytes == CHUNK_SIZE + 1


def test_lengthening_adds_zeros_and_no_bytes(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.write(ino, 0, b"data")
    change = scene.setattr(ino, size=2**40)
    assert change == Change((PutInode(ino, scene[ino]),), grows=True)
    assert scene[ino].size == 2**40
    assert scene.tree.content_bytes == 4


def test_truncating_to_nothing_drops_everything_at_once(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.write(ino, 0, b"x" * (9 * CHUNK_SIZE))
    change = scene.setattr(ino, size=0)
    assert change == Change((PutInode(ino, scene[ino]), DropChunks(ino, None)), grows=False)
    assert scene.tree.content_bytes == 0


def test_truncating_to_the_same_size_moves_the_times_only(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.write(ino, 0, b"data")
    change = scene.setattr(ino, size=4)
    assert change == Change((PutInode(ino, scene[ino]),), grows=False)
    assert scene.touched(ino) == (True, True)


def test_a_chunk_of_which_only_zeros_remain_is_dropped(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.write(ino, CHUNK_SIZE, b"\0\0\0x")
    scene.setattr(ino, size=CHUNK_SIZE + 3)
    assert scene.tree.inode(ino).chunks == {}
    assert scene.read(ino) == bytes(CHUNK_SIZE + 3)


def test_an_open_file_without_a_name_has_attributes_that_are_not_stored(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.write(ino, 0, b"data")
    scene.open(ino)
    scene.unlink(b"file")
    change = scene.setattr(ino, size=1, mode=0o600)
    assert change.ops[-1] == DropInode(ino, scene[ino])
    assert not [op for op in change.ops if isinstance(op, PutInode)]
    assert (scene[ino].nlink, scene[ino].size) == (0, 1)
    assert scene.read(ino) == b"d"


def test_attributes_of_what_is_gone_are_stale(scene: Scene) -> None:
    for fields in ({"mode": 0o600}, {"size": 0}):
        with scene.refuses(errno.ESTALE):
            scene.setattr(99, **fields)
    with scene.refuses(errno.ESTALE):
        scene.setxattr(99, b"user.a", b"")
    with scene.refuses(errno.ESTALE):
        scene.removexattr(99, b"user.a")


def test_a_time_that_was_seen_moves_on_even_where_the_clock_has_not(scene: Scene) -> None:
    ino = scene.create(b"file")
    seen = scene[ino].mtime_ns
    scene.tree.inode(ino).shown = True
    scene.tree.inode(ROOT).shown = True
    scene.tree.apply(plan_setattr(scene.tree, ino, NewAttributes(size=9), seen + 5))
    assert scene[ino].mtime_ns == scene[ino].ctime_ns == seen + MILLISECOND
    assert not scene.tree.inode(ino).shown
    scene.tree.apply(plan_create(scene.tree, EntryKey(ROOT, b"dir"), 9, NewInode(DIRECTORY, 0, 0), seen + 5))
    assert scene[ROOT].mtime_ns == scene[ROOT].ctime_ns == seen + MILLISECOND


def test_a_change_time_does_not_go_back_where_it_ran_ahead(scene: Scene) -> None:
    ino = scene.create(b"file")
    seen = scene[ino].mtime_ns
    scene.tree.inode(ino).shown = True
    scene.tree.apply(plan_setattr(scene.tree, ino, NewAttributes(size=9), seen + 5))
    scene.tree.apply(plan_setattr(scene.tree, ino, NewAttributes(mode=0o600), seen + 6))
    assert scene[ino].ctime_ns == seen + MILLISECOND


def test_a_time_that_is_asked_for_is_given_as_it_is(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.tree.inode(ino).shown = True
    change = plan_setattr(scene.tree, ino, NewAttributes(size=9, mtime_ns=BEGINNING), BEGINNING)
    scene.tree.apply(change)
    assert scene[ino].mtime_ns == BEGINNING


def test_extended_attributes_come_change_and_go(scene: Scene) -> None:
    ino = scene.create(b"file")
    before = scene[ino]
    assert scene.setxattr(ino, b"user.a", b"1").grows
    scene.setxattr(ino, b"user.b", b"\0\xff")
    assert scene[ino] == before._replace(xattrs=((b"user.a", b"1"), (b"user.b", b"\0\xff")), ctime_ns=scene.now)
    scene.setxattr(ino, b"user.a", b"")
    assert scene[ino].xattrs == ((b"user.a", b""), (b"user.b", b"\0\xff"))
    change = scene.removexattr(ino, b"user.a")
    assert scene[ino] == before._replace(xattrs=((b"user.b", b"\0\xff"),), ctime_ns=scene.now)
    assert change == Change((PutInode(ino, scene[ino]),), grows=False)


def test_an_extended_attribute_that_is_not_there_cannot_be_removed(scene: Scene) -> None:
    ino = scene.create(b"file")
    with scene.refuses(errno.ENODATA):
        scene.removexattr(ino, b"user.a")


def test_extended_attributes_share_a_limit(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.setxattr(ino, b"user.a", bytes(XATTRS_MAX - len(b"user.a") - 1))
    with scene.refuses(errno.ENOSPC):
        scene.setxattr(ino, b"user.b", b"")
    with scene.refuses(errno.ENOSPC):
        scene.setxattr(ino, b"user.a", bytes(XATTRS_MAX - len(b"user.a")))
    scene.setxattr(ino, b"user.a", b"short")
    scene.setxattr(ino, b"user.b", b"")
    assert dict(scene[ino].xattrs) == {b"user.a": b"short", b"user.b": b""}
