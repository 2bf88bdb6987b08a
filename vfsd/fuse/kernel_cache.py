"""Telling the kernel what to forget: it caches names, attributes and content, and learns only of its own changes.

Most of this waits until the kernel has no request under way on the inode, so it runs in threads and never in a request
handler. The exception is :meth:`FuseKernelCache.forget_attributes`.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import pyfuse3
import trio

from vfsd.tree.change import Change, DropEntry, DropInode, Op, PutEntry, PutInode
from vfsd.tree.chunks import read_chunks
from vfsd.tree.tree import Tree

_log = logging.getLogger(__name__)

T = TypeVar("T")

_THREADS = 8
"""Threads that may wait for the kernel to forget something."""


class _Byte(NamedTuple):
    """One byte of a file."""

    ino: int
    offset: int
    value: bytes


class FuseKernelCache:
    """What the kernel has cached of *tree*. Until :meth:`mounted` is called there is no kernel to tell."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._is_mounted = False
        self._limiter = trio.CapacityLimiter(_THREADS)

    def mounted(self) -> None:
        """Begin to tell the kernel."""
        self._is_mounted = True

    async def forget(self, change: Change) -> None:
        """Let the kernel forget what *change* made untrue; it was made without the kernel.

        Forgetting attributes does not change the size of a file that the kernel appends to. It learns of growth by
        being given the last byte. If that byte is out of date by then, it is forgotten again.
        """
        if not self._is_mounted:
            return
        ends = {op.ino: end for op in change.ops if isinstance(op, PutInode) and (end := self._end(op.ino))}
        await self._in_thread(_forget, change.ops)
        await self._in_thread(_extend, tuple(ends.values()))
        outdated = {ino for ino, end in ends.items() if not self._is_current(end)}
        await self._in_thread(_forget, [op for op in change.ops if isinstance(op, PutInode) and op.ino in outdated])

    async def _in_thread(self, tell: Callable[[Sequence[T]], None], about: Sequence[T]) -> None:
        """Call *tell* in a thread. These threads are not the store's: a request waited for may need one of those."""
        if about:
            await trio.to_thread.run_sync(tell, about, abandon_on_cancel=True, limiter=self._limiter)

    def _end(self, ino: int) -> _Byte | None:
        """Return the last byte of a regular file, if it has one."""
        inode = self._tree.inodes.get(ino)
        if inode is None or not inode.attributes.is_regular or not inode.attributes.size:
            return None
        offset = inode.attributes.size - 1
        return _Byte(ino, offset, self._read(ino, offset))

    def _is_current(self, byte: _Byte) -> bool:
        """Whether a file still has *byte*: neither cut off nor overwritten."""
        return byte.ino in self._tree.inodes and self._read(byte.ino, byte.offset) == byte.value

    def _read(self, ino: int, offset: int) -> bytes:
        inode = self._tree.inodes[ino]
        return read_chunks(inode.chunks, inode.attributes.size, offset, 1)

    def forget_attributes(self, inos: Iterable[int]) -> None:
        """Let the kernel ask again for the attributes of directories. Returns at once; a handler may call it.

        The kernel takes no lock on an inode or a page for this, and waits for no request (linux/fs/fuse/inode.c,
        ``fuse_reverse_inval_inode`` with a negative offset). An answer to an earlier question is not kept.
        """
        if not self._is_mounted:
            return
        for ino in inos:
            try:
                pyfuse3.invalidate_inode(pyfuse3.InodeT(ino), attr_only=True)
            except OSError as error:  # the kernel does not know the inode: it has nothing to forget
                _log.debug("no attributes to invalidate of inode %d: %s", ino, error)


def _forget(ops: Sequence[Op]) -> None:
    for op in ops:
        try:
            match op:
                case PutEntry() | DropEntry():
                    pyfuse3.invalidate_entry(pyfuse3.InodeT(op.parent), pyfuse3.FileNameT(op.name))
                case PutInode() | DropInode():
                    pyfuse3.invalidate_inode(pyfuse3.InodeT(op.ino))
                case _:
                    pass
        except OSError as error:  # the kernel does not know the name or inode: it has nothing to forget
            _log.debug("nothing to invalidate for %s: %s", type(op).__name__, error)


def _extend(ends: Sequence[_Byte]) -> None:
    """Give the kernel the last byte of files: a file that it takes for shorter grows to that."""
    for end in ends:
        try:
            pyfuse3.notify_store(pyfuse3.InodeT(end.ino), end.offset, end.value)
        except OSError as error:  # as above
            _log.debug("cannot tell the kernel the size of inode %d: %s", end.ino, error)
