"""Planning a write: size, times, what is put and dropped, and what is refused."""

import errno
import stat

import pytest

from tests.tree.planned_tree import FIFO, SYMLINK, PlannedTree
from vfsd.tree.change import CHUNK_SIZE, ROOT, Change, DropChunks, DropInode, PutChunks, PutInode
from vfsd.tree.plan_content import FILE_MAX
from vfsd.tree.plan_names import NewInode


def test_a_write_sets_content_size_and_times(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    before = planned[ino]
    change = planned.write(ino, 0, b"hello")
    assert planned.read(ino) == b"hello"
    assert planned[ino] == before._replace(size=5, mtime_ns=planned.now, ctime_ns=planned.now)
    assert change == Change((PutInode(ino, planned[ino]), PutChunks(ino, {0: b"hello"})), grows=True)


def test_a_write_inside_leaves_the_size(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, 0, b"hello")
    planned.write(ino, 1, b"E")
    assert planned.read(ino) == b"hEllo"


def test_a_write_past_the_end_leaves_a_hole_of_zeros(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, 2 * CHUNK_SIZE + 1, b"z")
    assert planned.read(ino) == bytes(2 * CHUNK_SIZE + 1) + b"z"
    assert planned.tree.content_bytes == 2


def test_zeros_take_no_room_but_count_in_the_size(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    change = planned.write(ino, 0, bytes(3 * CHUNK_SIZE))
    assert change.ops == (PutInode(ino, planned[ino]),)
    assert planned[ino].size == 3 * CHUNK_SIZE
    assert planned.tree.content_bytes == 0


def test_zeros_over_something_drop_only_the_chunks_that_are_there(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, CHUNK_SIZE, b"x")
    change = planned.write(ino, 0, bytes(3 * CHUNK_SIZE))
    assert change.ops == (PutInode(ino, planned[ino]), DropChunks(ino, (1,)))
    assert planned.tree.inode(ino).chunks == {}


def test_a_write_of_nothing_has_no_effect(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    before = planned[ino]
    assert planned.write(ino, 100, b"") == Change((), grows=False)
    assert planned[ino] == before


def test_the_largest_offset_can_be_written_and_none_beyond(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.write(ino, FILE_MAX - 1, b"z")
    assert planned[ino].size == FILE_MAX
    with planned.refuses(errno.EFBIG):
        planned.write(ino, FILE_MAX, b"z")
    with planned.refuses(errno.EFBIG):
        planned.write(ino, FILE_MAX - 1, b"zz")


@pytest.mark.parametrize("mode", [SYMLINK, FIFO, stat.S_IFDIR | 0o755, stat.S_IFSOCK | 0o600, stat.S_IFCHR | 0o600])
@pytest.mark.parametrize("data", [b"data", b""])
def test_only_regular_files_are_written(planned: PlannedTree, mode: int, data: bytes) -> None:
    ino = planned.create(b"other", ROOT, NewInode(mode, 0, 0))
    with planned.refuses(errno.EINVAL):
        planned.write(ino, 0, data)


def test_a_file_that_is_gone_is_stale(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.unlink(b"file")
    with planned.refuses(errno.ESTALE):
        planned.write(ino, 0, b"data")


def test_an_open_file_without_a_name_is_written_on(planned: PlannedTree) -> None:
    ino = planned.create(b"file")
    planned.open(ino)
    planned.unlink(b"file")
    change = planned.write(ino, 0, b"data")
    assert planned.read(ino) == b"data"
    assert planned[ino].nlink == 0
    assert change.ops[-1] == DropInode(ino, planned[ino])
