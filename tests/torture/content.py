"""The content that writers write, and the requests in which the kernel may send it."""

import os
import random
from collections.abc import Iterator

from tests.torture.model import Model, Node

PAGE = 4096
REQUEST = 1 << 20
"""The most bytes that the kernel sends in one write request, counted from the start of the first page."""


class PartialWrite(Exception):
    """A write(2) wrote only a part: a request failed, or the daemon ended."""


def content_of(seed: int, size: int) -> bytes:
    """Return *size* bytes that depend on *seed* only. Sometimes they are all zeros, which are stored as a hole.

    The program has written to all of this memory: of untouched memory the kernel would send one page at a time.
    """
    return b"\0" * size if seed % 7 == 0 else random.Random(seed).randbytes(size)


def write(fd: int, data: bytes, offset: int) -> Iterator[None]:
    """Write *data* at *offset*, and yield for each step that is known to be done. O_APPEND ignores *offset*.

    Raises OSError if nothing was written, PartialWrite if a part was.
    """
    os.lseek(fd, offset, os.SEEK_SET)
    done = os.write(fd, data)
    start = os.lseek(fd, 0, os.SEEK_CUR) - done
    yield from (None for end in _request_ends(start, len(data)) if end <= done)
    if done != len(data):
        raise PartialWrite


def write_to_model(model: Model, node: Node, offset: int, data: bytes) -> Iterator[bool]:
    """Write *data* to *node* in pieces. After each piece yield whether the next one may be in the same request.

    The kernel splits a write in one of two ways. The pieces here end wherever either way ends a request.
    """
    start = 0
    for end in _request_ends(offset, len(data)):
        piece, position = data[start:end], offset + start
        content = model.touch(node).content.ljust(position, b"\0")
        node.content = content[:position] + piece + content[position + len(piece) :]
        yield end != len(data)
        start = end


def _request_ends(offset: int, size: int) -> list[int]:
    """Return after how many bytes a request may end, including the end of the write.

    A request covers at most 256 pages. If the first page is written in part and is not in the kernel's cache, it has
    its own request (Linux, fs/fuse/file.c, fuse_fill_write_pages).
    """
    before = offset % PAGE
    from_start = range(REQUEST - before, size, REQUEST)
    after_first_page = range(PAGE - before, size, REQUEST) if before else ()
    return sorted({*from_start, *after_first_page, size})
