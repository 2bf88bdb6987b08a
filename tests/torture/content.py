"""What writers write, how, and in which pieces the kernel may hand it over."""

import os
import random
from collections.abc import Iterator

from tests.torture.model import Model, Node

PAGE = 4096
REQUEST = 1 << 20
"""Bytes that the kernel hands over in one write at most, counted from the start of the first page."""


class CutShort(Exception):
    """A write did less than it was asked to: something failed, or the daemon ended, halfway."""


def made_of(seed: int, size: int) -> bytes:
    """Return *size* bytes that only *seed* decides; now and then they are all zeros, which are stored as a hole.

    All of them have been written to: of memory that has not, the kernel hands over a page at a time.
    """
    return b"\0" * size if seed % 7 == 0 else random.Random(seed).randbytes(size)


def write(fd: int, data: bytes, offset: int) -> Iterator[None]:
    """Write *data* at *offset*, which is ignored for a file opened to append; yield for each step known to be done.

    Raises OSError if nothing was, CutShort if not all.
    """
    os.lseek(fd, offset, os.SEEK_SET)
    done = os.write(fd, data)
    start = os.lseek(fd, 0, os.SEEK_CUR) - done
    yield from (None for end in _cuts(start, len(data)) if end <= done)
    if done != len(data):
        raise CutShort


def written(model: Model, node: Node, offset: int, data: bytes) -> Iterator[bool]:
    """Write *data* piece by piece, as the kernel may hand it over, yielding whether the next may belong to the same.

    It cuts in one of two ways, and the pieces here are those of both.
    """
    start = 0
    for end in _cuts(offset, len(data)):
        piece, position = data[start:end], offset + start
        content = model.touch(node).content.ljust(position, b"\0")
        node.content = content[:position] + piece + content[position + len(piece) :]
        yield end != len(data)
        start = end


def _cuts(offset: int, size: int) -> list[int]:
    """Return after how many bytes a write may be cut, its end included.

    A request covers 256 pages at most; and where the first page is written in part and not in the kernel's cache, it
    has a request to itself (Linux, fs/fuse/file.c, fuse_fill_write_pages).
    """
    before = offset % PAGE
    whole = range(REQUEST - before, size, REQUEST)
    first_apart = range(PAGE - before, size, REQUEST) if before else ()
    return sorted({*whole, *first_apart, size})
