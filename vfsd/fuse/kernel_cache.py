"""Telling the kernel what to forget: it caches names, attributes and content, and learns only of its own changes.

Most of this waits until the kernel has no request under way on the inode, so it runs in threads. A request handler may
await only :meth:`FuseKernelCache.drop_content`, and only without locks. It may also call
:meth:`FuseKernelCache.drop_refused` and :meth:`FuseKernelCache.forget_attributes`, which return at once.

A reply may be on its way when the kernel is told to forget; it must not be kept. If the kernel knows the inode, it
discards that reply itself, because each invalidation raises the inode's attribute version (linux/fs/fuse/inode.c,
``fuse_reverse_inval_inode`` and ``fuse_change_attributes``). If the reply is the first one about the inode, the kernel
answers ENOENT: it does not know the inode yet. So if our lookup count is above zero, ENOENT means: tell it again. Names
have no such gap: an invalidation waits for the lookups in its directory.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import pyfuse3
import trio

from vfsd.scope.background import BackgroundTasks
from vfsd.tree.change import Change, DropEntry, DropInode, PutEntry, PutInode
from vfsd.tree.chunks import read_chunks
from vfsd.tree.tree import Tree

_log = logging.getLogger(__name__)

T = TypeVar("T")

_THREADS = 8
"""Threads that may wait for the kernel to forget something."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.001, 0.1
"""Seconds between two attempts to tell about an inode that the kernel is about to know."""


class _Byte(NamedTuple):
    """One byte of a file."""

    ino: int
    offset: int
    value: bytes


class FuseKernelCache:
    """What the kernel has cached of *tree*. Until :meth:`mounted` is called there is no kernel to tell.

    *background* runs what a handler cannot wait for.
    """

    def __init__(self, tree: Tree, background: BackgroundTasks) -> None:
        self._tree = tree
        self._background = background
        self._is_mounted = False
        self._limiter = trio.CapacityLimiter(_THREADS)
        self._refused: set[int] = set()

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
        inos = dict.fromkeys(op.ino for op in change.ops if isinstance(op, (PutInode, DropInode)))
        await self._in_thread(_forget_names, [op for op in change.ops if isinstance(op, (PutEntry, DropEntry))])
        await self._forget_inodes(inos)
        await self._in_thread(_extend, tuple(ends.values()))
        await self._forget_inodes(ino for ino, end in ends.items() if not self._is_current(end))

    async def _forget_inodes(self, inos: Iterable[int], *, attr_only: bool = False) -> None:
        """Let the kernel forget *inos*; tell it again about those that it is only about to know."""
        left, pause = tuple(inos), _FIRST_PAUSE
        while left:
            unknown = await self._in_thread(partial(_forget_inodes, attr_only=attr_only), left)
            left = tuple(ino for ino in unknown if self._is_referenced(ino))
            if left:
                await trio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _is_referenced(self, ino: int) -> bool:
        inode = self._tree.inodes.get(ino)
        return inode is not None and inode.lookups > 0

    async def _in_thread(self, tell: Callable[[Sequence[T]], list[T]], about: Sequence[T]) -> list[T]:
        """Call *tell* in a thread. These threads are not the store's: a request waited for may need one of those."""
        if not about:
            return []
        return await trio.to_thread.run_sync(tell, about, abandon_on_cancel=True, limiter=self._limiter)

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
        unknown = [ino for ino in _forget_inodes(tuple(inos), attr_only=True) if self._is_referenced(ino)]
        if unknown:
            self._background.start(self._forget_inodes(unknown, attr_only=True))

    async def drop_content(self, ino: int) -> None:
        """Let the kernel drop what it has cached of the content of *ino*. A handler may wait for this, without locks.

        The kernel then waits for reads of that file, which take no lock here, and sends what a shared mapping has
        changed, as any write.
        """
        if self._is_mounted:
            await self._in_thread(_forget_inodes, (ino,))

    def drop_refused(self, ino: int) -> None:
        """Let the kernel drop the content of *ino* soon, because a write to it was refused. Returns at once.

        The kernel itself drops what a refused write(2) had. What a shared mapping had changed it keeps, and would show
        to every reader for good. One drop serves all writes that are refused before it begins.
        """
        if self._is_mounted and ino not in self._refused:
            self._refused.add(ino)
            self._background.start(self._drop_refused(ino))

    async def _drop_refused(self, ino: int) -> None:
        await trio.lowlevel.checkpoint()  # let the handler answer first: until then the kernel holds the pages
        self._refused.discard(ino)
        await self._in_thread(_forget_inodes, (ino,))


def _forget_names(ops: Sequence[PutEntry | DropEntry]) -> list[PutEntry | DropEntry]:
    """Let the kernel forget names. Return those that it does not know."""
    unknown = []
    for op in ops:
        try:
            pyfuse3.invalidate_entry(pyfuse3.InodeT(op.parent), pyfuse3.FileNameT(op.name))
        except OSError as error:
            _log.debug("the kernel does not know %r in directory %d: %s", op.name, op.parent, error)
            unknown.append(op)
    return unknown


def _forget_inodes(inos: Sequence[int], *, attr_only: bool = False) -> list[int]:
    """Let the kernel forget attributes, and content unless *attr_only*. Return the inodes that it does not know."""
    unknown = []
    for ino in inos:
        try:
            pyfuse3.invalidate_inode(pyfuse3.InodeT(ino), attr_only=attr_only)
        except OSError as error:
            _log.debug("the kernel does not know inode %d: %s", ino, error)
            unknown.append(ino)
    return unknown


def _extend(ends: Sequence[_Byte]) -> list[_Byte]:
    """Give the kernel the last byte of files: a file that it takes for shorter grows to that."""
    unknown = []
    for end in ends:
        try:
            pyfuse3.notify_store(pyfuse3.InodeT(end.ino), end.offset, end.value)
        except OSError as error:
            _log.debug("cannot tell the kernel the size of inode %d: %s", end.ino, error)
            unknown.append(end)
    return unknown
