"""What a scope may hold: only what grows is refused, and only where it would go beyond a limit."""

import errno

import pytest

from tests.tree.scene import FILE, GID, UID, Scene
from vfsd.errors import FsError
from vfsd.tree.change import CHUNK_SIZE, ROOT, Change, Limits
from vfsd.tree.limits import check_limits, growth
from vfsd.tree.plan_attributes import NewAttributes, plan_setattr
from vfsd.tree.plan_content import plan_write
from vfsd.tree.plan_names import EntryKey, NewInode, plan_create, plan_link, plan_rename, plan_unlink


def fits(scene: Scene, change: Change, **limits: int) -> int:
    """Return 0 if *change* fits into *limits*, or the errno."""
    try:
        check_limits(scene.tree, change, Limits(**limits))
    except FsError as error:
        return error.errno
    return 0


@pytest.fixture
def ino(scene: Scene) -> int:
    """Return a file of five bytes, beside nothing else."""
    number = scene.create(b"file")
    scene.write(number, 0, b"hello")
    return number


def test_no_limit_is_none_or_zero(scene: Scene, ino: int) -> None:
    change = plan_write(scene.tree, ino, 0, b"x" * CHUNK_SIZE, 0)
    assert fits(scene, change) == 0
    assert fits(scene, change, max_bytes=0, max_files=0, max_file_bytes=0) == 0


def test_bytes_in_all_count_what_is_held(scene: Scene, ino: int) -> None:
    change = plan_write(scene.tree, ino, 5, b" you", 0)
    assert fits(scene, change, max_bytes=9) == 0
    assert fits(scene, change, max_bytes=8) == errno.ENOSPC


def test_writing_over_what_is_there_and_writing_zeros_need_no_room(scene: Scene, ino: int) -> None:
    assert fits(scene, plan_write(scene.tree, ino, 0, b"HELLO", 0), max_bytes=1) == 0
    assert fits(scene, plan_write(scene.tree, ino, CHUNK_SIZE, bytes(CHUNK_SIZE), 0), max_bytes=1) == 0


def test_the_files_of_a_scope_are_counted_with_its_root(scene: Scene, ino: int) -> None:
    change = plan_create(scene.tree, EntryKey(ROOT, b"other"), 9, NewInode(FILE, UID, GID), 0)
    assert fits(scene, change, max_files=3) == 0
    assert fits(scene, change, max_files=2) == errno.ENOSPC
    assert fits(scene, plan_link(scene.tree, ino, EntryKey(ROOT, b"link"), 0), max_files=2) == 0


def test_one_file_is_too_long_only_if_it_becomes_longer(scene: Scene, ino: int) -> None:
    assert fits(scene, plan_write(scene.tree, ino, 5, b"!", 0), max_file_bytes=6) == 0
    assert fits(scene, plan_write(scene.tree, ino, 5, b"!", 0), max_file_bytes=5) == errno.EFBIG
    assert fits(scene, plan_setattr(scene.tree, ino, NewAttributes(size=6), 0), max_file_bytes=5) == errno.EFBIG
    assert fits(scene, plan_write(scene.tree, ino, 0, b"HELLO", 0), max_file_bytes=3) == 0


def test_a_full_scope_can_be_emptied_and_put_in_order(scene: Scene, ino: int) -> None:
    tree = scene.tree
    for change in (
        plan_unlink(tree, EntryKey(ROOT, b"file"), 0),
        plan_rename(tree, EntryKey(ROOT, b"file"), EntryKey(ROOT, b"other"), 0, 0),
        plan_setattr(tree, ino, NewAttributes(size=4), 0),
        plan_setattr(tree, ino, NewAttributes(mode=0o600), 0),
    ):
        assert fits(scene, change, max_bytes=1, max_files=1, max_file_bytes=1) == 0


def test_growth_is_what_applying_adds(scene: Scene, ino: int) -> None:
    scene.write(ino, CHUNK_SIZE, b"more")
    for change in (
        plan_write(scene.tree, ino, 3, b"xyz" * CHUNK_SIZE, 0),
        plan_write(scene.tree, ino, CHUNK_SIZE, bytes(2 * CHUNK_SIZE), 0),
        plan_setattr(scene.tree, ino, NewAttributes(size=CHUNK_SIZE + 2), 0),
        plan_setattr(scene.tree, ino, NewAttributes(size=0), 0),
    ):
        before = scene.tree.content_bytes
        expected = growth(scene.tree, change)
        scene.tree.apply(change)
        assert scene.tree.content_bytes - before == expected
        assert expected


def test_a_limit_that_is_named_replaces_another() -> None:
    assert Limits(1, 2, 3).changed_by(Limits(max_files=0)) == Limits(1, 0, 3)
