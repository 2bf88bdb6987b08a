"""What the kernel is told about an inode, how long it may cache that, and what is recorded."""

import stat
from typing import Any

import pytest

from vfsd.fuse.handles import OpenFile
from vfsd.fuse.replies import CACHED, Replies
from vfsd.tree.change import CHUNK_SIZE, Attributes
from vfsd.tree.inode import Inode

FILE = Attributes(stat.S_IFREG | 0o640, 2, 1000, 1001, 0, 5, 11, 22, 33)


def inode(ino: int = 7, **fields: Any) -> Inode:
    return Inode(ino, FILE._replace(**fields))


def test_every_attribute_reaches_the_kernel() -> None:
    entry = Replies(None).show(inode(rdev=9))
    shown = (entry.st_ino, entry.st_mode, entry.st_nlink, entry.st_uid, entry.st_gid, entry.st_rdev, entry.st_size)
    assert shown == (7, stat.S_IFREG | 0o640, 2, 1000, 1001, 9, 5)
    assert (entry.st_atime_ns, entry.st_mtime_ns, entry.st_ctime_ns) == (11, 22, 33)
    assert (entry.entry_timeout, entry.attr_timeout) == (CACHED, CACHED)


def test_an_owner_is_shown_for_every_file() -> None:
    entry = Replies((5, 6)).show(inode())
    assert (entry.st_uid, entry.st_gid) == (5, 6)


def test_showing_records_that_the_time_was_seen_and_counts_nothing() -> None:
    file = inode()
    Replies(None).show(file)
    assert (file.shown, file.lookups) == (True, 0)


def test_a_counted_reply_is_one_reference_more() -> None:
    file, replies = inode(), Replies(None)
    for _ in range(3):
        replies.show_and_count(file)
    assert file.lookups == 3


@pytest.mark.parametrize(
    ("size", "chunks", "blocks"),
    [
        (0, 0, 0),
        (10 * CHUNK_SIZE, 0, 0),
        (1, 1, 1),
        (513, 1, 2),
        (CHUNK_SIZE, 1, CHUNK_SIZE // 512),
        (10 * CHUNK_SIZE, 2, 2 * CHUNK_SIZE // 512),
    ],
)
def test_blocks_show_holes_and_no_more_than_the_size(size: int, chunks: int, blocks: int) -> None:
    file = inode(size=size)
    file.chunks = dict.fromkeys(range(chunks), b"x")
    assert Replies(None).show(file).st_blocks == blocks


def test_attributes_are_not_cached_while_a_file_is_open_with_o_direct() -> None:
    replies, file, other = Replies(None), inode(7), inode(8)
    opened = OpenFile(7, truncated=False, direct=True)
    for _ in range(2):
        replies.opened(opened)
    replies.closed(opened)
    assert (replies.show(file).attr_timeout, replies.show(other).attr_timeout) == (0.0, CACHED)
    replies.closed(opened)
    assert replies.show(file).attr_timeout == CACHED


def test_absence_may_be_cached() -> None:
    absent = Replies(None).absent
    assert (absent.st_ino, absent.entry_timeout) == (0, CACHED)
