"""What a scope may hold: only a change that grows is refused, and only if it would exceed a limit."""

import errno

import pytest

from tests.tree.planned_tree import FILE, GID, UID, PlannedTree
from vfsd.errors import FsError
from vfsd.tree.change import CHUNK_SIZE, ROOT, Change, Limits
from vfsd.tree.limits import check_limits, growth
from vfsd.tree.plan_attributes import NewAttributes, plan_setattr
from vfsd.tree.plan_content import plan_write
from vfsd.tree.plan_names import EntryKey, NewInode, plan_create, plan_link, plan_rename, plan_unlink


def fits(planned: PlannedTree, change: Change, **limits: int) -> int:
    """Return 0 if *change* fits into *limits*, or the errno."""
    try:
        check_limits(planned.tree, change, Limits(**limits))
    except FsError as error:
        return error.errno
    return 0


@pytest.fixture
def ino(planned: PlannedTree) -> int:
    """Return a file of five bytes, the only file of the tree."""
    number = planned.create(b"file")
    planned.write(number, 0, b"hello")
    return number


def test_no_limit_is_none_or_zero(planned: PlannedTree, ino: int) -> None:
    change = plan_write(planned.tree, ino, 0, b"x" * CHUNK_SIZE, 0)
    assert fits(planned, change) == 0
    assert fits(planned, change, max_bytes=0, max_files=0, max_file_bytes=0) == 0


def test_bytes_in_all_count_what_is_held(planned: PlannedTree, ino: int) -> None:
    change = plan_write(planned.tree, ino, 5, b" you", 0)
    assert fits(planned, change, max_bytes=9) == 0
    assert fits(planned, change, max_bytes=8) == errno.ENOSPC


def test_writing_over_what_is_there_and_writing_zeros_need_no_room(planned: PlannedTree, ino: int) -> None:
    assert fits(planned, plan_write(planned.tree, ino, 0, b"HELLO", 0), max_bytes=1) == 0
    assert fits(planned, plan_write(planned.tree, ino, CHUNK_SIZE, bytes(CHUNK_SIZE), 0), max_bytes=1) == 0


def test_the_files_of_a_scope_are_counted_with_its_root(planned: PlannedTree, ino: int) -> None:
    change = plan_create(planned.tree, EntryKey(ROOT, b"other"), 9, NewInode(FILE, UID, GID), 0)
    assert fits(planned, change, max_files=3) == 0
    assert fits(planned, change, max_files=2) == errno.ENOSPC
    assert fits(planned, plan_link(planned.tree, ino, EntryKey(ROOT, b"link"), 0), max_files=2) == 0


def test_one_file_is_too_long_only_if_it_becomes_longer(planned: PlannedTree, ino: int) -> None:
    assert fits(planned, plan_write(planned.tree, ino, 5, b"!", 0), max_file_bytes=6) == 0
    assert fits(planned, plan_write(planned.tree, ino, 5, b"!", 0), max_file_bytes=5) == errno.EFBIG
    assert fits(planned, plan_setattr(planned.tree, ino, NewAttributes(size=6), 0), max_file_bytes=5) == errno.EFBIG
    assert fits(planned, plan_write(planned.tree, ino, 0, b"HELLO", 0), max_file_bytes=3) == 0


def test_a_full_scope_can_be_emptied_and_put_in_order(planned: PlannedTree, ino: int) -> None:
    tree = planned.tree
    for change in (
        plan_unlink(tree, EntryKey(ROOT, b"file"), 0),
        plan_rename(tree, EntryKey(ROOT, b"file"), EntryKey(ROOT, b"other"), 0, 0),
        plan_setattr(tree, ino, NewAttributes(size=4), 0),
        plan_setattr(tree, ino, NewAttributes(mode=0o600), 0),
    ):
        assert fits(planned, change, max_bytes=1, max_files=1, max_file_bytes=1) == 0


def test_growth_is_what_applying_adds(planned: PlannedTree, ino: int) -> None:
    planned.write(ino, CHUNK_SIZE, b"more")
    for change in (
        plan_write(planned.tree, ino, 3, b"xyz" * CHUNK_SIZE, 0),
        plan_write(planned.tree, ino, CHUNK_SIZE, bytes(2 * CHUNK_SIZE), 0),
        plan_setattr(planned.tree, ino, NewAttributes(size=CHUNK_SIZE + 2), 0),
        plan_setattr(planned.tree, ino, NewAttributes(size=0), 0),
    ):
        before = planned.tree.content_bytes
        expected = growth(planned.tree, change)
        planned.tree.apply(change)
        assert planned.tree.content_bytes - before == expected
        assert expected


def test_a_limit_that_is_named_replaces_another() -> None:
    assert Limits(1, 2, 3).changed_by(Limits(max_files=0)) == Limits(1, 0, 3)
