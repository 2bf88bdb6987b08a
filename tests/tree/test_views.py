"""Chunks of a large write are views of the buffer of the request, until they are copied or the change is applied."""

import pytest

from tests.tree.planned_tree import PlannedTree
from vfsd.tree.change import CHUNK_SIZE, Change, PutChunks, content_size, copy_views
from vfsd.tree.plan_content import plan_write
from vfsd.tree.plan_names import EntryKey, NewInode, plan_create
from vfsd.tree.tree import Tree

LARGE = bytes(range(1, 251)) * 400
"""Six full chunks and a part of one."""


def chunks_of(change: Change) -> list[bytes | memoryview]:
    return [chunk for op in change.ops if isinstance(op, PutChunks) for chunk in op.chunks.values()]


@pytest.fixture
def tree(planned: PlannedTree) -> Tree:
    return planned.tree


def a_file(tree: Tree) -> int:
    ino = tree.allocate()
    tree.apply(plan_create(tree, EntryKey(1, b"file"), ino, NewInode(0o100644, 0, 0), 1))
    return ino


def test_planning_does_not_copy_the_full_chunks_of_a_large_write(tree: Tree) -> None:
    change = plan_write(tree, a_file(tree), 0, LARGE, 2)
    views = [chunk for chunk in chunks_of(change) if isinstance(chunk, memoryview)]
    assert len(views) == len(LARGE) // CHUNK_SIZE
    assert all(view.obj is LARGE for view in views)


def test_each_step_copies_one_chunk_and_the_bytes_stay_the_same(tree: Tree) -> None:
    change = plan_write(tree, a_file(tree), 0, LARGE, 2)
    assert sum(1 for _ in copy_views((change,))) == len(LARGE) // CHUNK_SIZE
    assert all(isinstance(chunk, bytes) for chunk in chunks_of(change))
    assert b"".join(chunks_of(change)) == LARGE
    assert content_size((change,)) == len(LARGE)
    assert not list(copy_views((change,)))


def test_memory_never_holds_a_view(tree: Tree) -> None:
    ino = a_file(tree)
    tree.apply(plan_write(tree, ino, 0, LARGE, 2))
    assert {type(chunk) for chunk in tree.inodes[ino].chunks.values()} == {bytes}


def test_zeros_in_a_large_write_are_not_kept(tree: Tree) -> None:
    ino = a_file(tree)
    tree.apply(plan_write(tree, ino, 0, bytes(3 * CHUNK_SIZE) + b"\0" + LARGE, 2))
    assert min(tree.inodes[ino].chunks) == 3
