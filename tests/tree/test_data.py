"""Planning a write: size, times, what is put and dropped, and what is refused."""

import errno
import stat

import pytest

from tests.tree.scene import FIFO, SYMLINK, Scene
from vfsd.tree.change import CHUNK_SIZE, ROOT, Change, DropChunks, DropInode, PutChunks, PutInode
from vfsd.tree.plan_content import FILE_MAX
from vfsd.tree.plan_names import NewInode


def test_a_write_sets_content_size_and_times(scene: Scene) -> None:
    ino = scene.create(b"file")
    before = scene[ino]
    change = scene.write(ino, 0, b"hello")
    assert scene.read(ino) == b"hello"
    assert scene[ino] == before._replace(size=5, mtime_ns=scene.now, ctime_ns=scene.now)
    assert change == Change((PutInode(ino, scene[ino]), PutChunks(ino, {0: b"hello"})), grows=True)


def test_a_write_inside_leaves_the_size(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.write(ino, 0, b"hello")
    scene.write(ino, 1, b"E")
    assert scene.read(ino) == b"hEllo"


def test_a_write_past_the_end_leaves_a_hole_of_zeros(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.write(ino, 2 * CHUNK_SIZE + 1, b"z")
    assert scene.read(ino) == bytes(2 * CHUNK_SIZE + 1) + b"z"
    assert scene.tree.content_bytes == 2


def test_zeros_take_no_room_but_count_in_the_size(scene: Scene) -> None:
    ino = scene.create(b"file")
    change = scene.write(ino, 0, bytes(3 * CHUNK_SIZE))
    assert change.ops == (PutInode(ino, scene[ino]),)
    assert scene[ino].size == 3 * CHUNK_SIZE
    assert scene.tree.content_bytes == 0


def test_zeros_over_something_drop_only_the_chunks_that_are_there(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.write(ino, CHUNK_SIZE, b"x")
    change = scene.write(ino, 0, bytes(3 * CHUNK_SIZE))
    assert change.ops == (PutInode(ino, scene[ino]), DropChunks(ino, (1,)))
    assert scene.tree.inode(ino).chunks == {}


def test_a_write_of_nothing_has_no_effect(scene: Scene) -> None:
    ino = scene.create(b"file")
    before = scene[ino]
    assert scene.write(ino, 100, b"") == Change((), grows=False)
    assert scene[ino] == before


def test_the_largest_offset_can_be_written_and_none_beyond(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.write(ino, FILE_MAX - 1, b"z")
    assert scene[ino].size == FILE_MAX
    with scene.refuses(errno.EFBIG):
        scene.write(ino, FILE_MAX, b"z")
    with scene.refuses(errno.EFBIG):
        scene.write(ino, FILE_MAX - 1, b"zz")


@pytest.mark.parametrize("mode", [SYMLINK, FIFO, stat.S_IFDIR | 0o755, stat.S_IFSOCK | 0o600, stat.S_IFCHR | 0o600])
@pytest.mark.parametrize("data", [b"data", b""])
def test_only_regular_files_are_written(scene: Scene, mode: int, data: bytes) -> None:
    ino = scene.create(b"other", ROOT, NewInode(mode, 0, 0))
    with scene.refuses(errno.EINVAL):
        scene.write(ino, 0, data)


def test_a_file_that_is_gone_is_stale(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.unlink(b"file")
    with scene.refuses(errno.ESTALE):
        scene.write(ino, 0, b"data")


def test_an_open_file_without_a_name_is_written_on(scene: Scene) -> None:
    ino = scene.create(b"file")
    scene.open(ino)
    scene.unlink(b"file")
    change = scene.write(ino, 0, b"data")
    assert scene.read(ino) == b"data"
    assert scene[ino].nlink == 0
    assert change.ops[-1] == DropInode(ino, scene[ino])
