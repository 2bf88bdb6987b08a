"""Mounting and serving: the life of one FUSE session. pyfuse3 keeps it in globals, so a process has one at most."""

import errno
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyfuse3
import trio

from vfsd.config import MountConfig
from vfsd.errors import FuseUnavailable, MountpointError, VfsdError
from vfsd.fuse.guard import install
from vfsd.fuse.idle_poll import IdlePoll
from vfsd.fuse.operations import Operations, XattrOperations
from vfsd.fuse.replies import Replies
from vfsd.fuse.root_references import LooseOperations, LooseXattrOperations
from vfsd.fuse.trace import Tracer
from vfsd.scope.volume import Volume
from vfsd.tree.change import Change, DropEntry, DropInode, Op, PutEntry, PutInode

_log = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_TASKS = 1024
"""Requests served side by side. With all of them waiting for the store a reader would wait too; the kernel's own
limit on what it hands out keeps well below."""
_MIN_TASKS = 8
"""Idle workers kept, so that a burst need not start any."""
_INFORMERS = 8
"""Threads that may wait for the kernel to forget something."""


class _Byte(NamedTuple):
    """One byte of a file."""

    ino: int
    offset: int
    value: bytes


class FuseSession:
    """One mount of *volume* as *config* says."""

    def __init__(self, volume: Volume, config: MountConfig) -> None:
        self._volume = volume
        self._config = config
        self._informers = trio.CapacityLimiter(_INFORMERS)

    def mount(self) -> None:
        """Mount; requests queue in the kernel until :meth:`serve`. Raises FuseUnavailable, MountpointError."""
        operations = _KINDS[self._config.loose_references, self._config.xattr](
            self._volume, Replies(self._config.owner)
        )
        install(operations, Tracer() if self._config.debug else None)
        self._volume.changes.on_settled = self.tell
        self._volume.changes.on_moved = _forget_attributes
        with _stderr_of_libfuse() as said:
            try:
                pyfuse3.init(operations, self._config.mountpoint, set(mount_options(self._config)))
            except RuntimeError as error:
                why = Path(said).read_text(errors="replace").strip().replace("\n", "; ") or str(error)
                raise _refusal(self._config.mountpoint, why) from None

    async def serve(self) -> None:
        """Answer requests until unmounted or told to :meth:`stop`; what is in flight ends first."""
        anticipation = IdlePoll(lambda: self._volume.store.pending > 0)
        trio.lowlevel.add_instrument(anticipation)
        try:
            await pyfuse3.main(min_tasks=_MIN_TASKS, max_tasks=_MAX_TASKS)
        finally:
            trio.lowlevel.remove_instrument(anticipation)

    def stop(self) -> None:
        """Let :meth:`serve` return once what is in flight is answered."""
        pyfuse3.terminate()

    def close(self) -> None:
        """Unmount, if that has not happened yet; those who still have files open get ENOTCONN."""
        pyfuse3.close(unmount=True)

    async def tell(self, change: Change) -> None:
        """Let the kernel forget what *change* made untrue; it was made behind the kernel's back.

        From a thread, for it may have to wait for requests. That does not cover the size of a file, which is where the
        kernel appends: it learns of growth by the last byte. If that is out of date by then, it is forgotten again.
        """
        ends = {op.ino: end for op in change.ops if isinstance(op, PutInode) and (end := self._end(op.ino))}
        await self._aside(_forget_cached, change.ops)
        await self._aside(_extend, tuple(ends.values()))
        outdated = {ino for ino, end in ends.items() if not self._is_true(end)}
        await self._aside(_forget_cached, [op for op in change.ops if isinstance(op, PutInode) and op.ino in outdated])

    async def _aside(self, inform: Callable[[Sequence[T]], None], what: Sequence[T]) -> None:
        """Call *inform* in a thread. The threads are apart from the store's: requests waited for may need those."""
        if what:
            await trio.to_thread.run_sync(inform, what, abandon_on_cancel=True, limiter=self._informers)

    def _end(self, ino: int) -> _Byte | None:
        """Return the last byte of a regular file, if it has one."""
        inode = self._volume.tree.inodes.get(ino)
        if inode is None or not inode.attributes.is_regular or not inode.attributes.size:
            return None
        offset = inode.attributes.size - 1
        return _Byte(ino, offset, self._volume.read(ino, offset, 1))

    def _is_true(self, byte: _Byte) -> bool:
        """Whether a file still has *byte*: neither cut off nor written over."""
        return byte.ino in self._volume.tree.inodes and self._volume.read(byte.ino, byte.offset, 1) == byte.value


_KINDS: dict[tuple[bool, bool], type[Operations]] = {
    (False, False): Operations,
    (False, True): XattrOperations,
    (True, False): LooseOperations,
    (True, True): LooseXattrOperations,
}
"""By whether lookups forgive, and whether there are extended attributes."""


def mount_options(config: MountConfig) -> frozenset[str]:
    """Return the options for libfuse (:manpage:`mount.fuse3(8)`)."""
    names = {"default_permissions", f"fsname=vfsd:{config.scope}", "subtype=vfsd"}
    if config.read_only:
        names.add("ro")
    return frozenset(names | config.options)


def _forget_cached(ops: Sequence[Op]) -> None:
    for op in ops:
        try:
            match op:
                case PutEntry() | DropEntry():
                    pyfuse3.invalidate_entry(pyfuse3.InodeT(op.parent), pyfuse3.FileNameT(op.name))
                case PutInode() | DropInode():
                    pyfuse3.invalidate_inode(pyfuse3.InodeT(op.ino))
                case _:
                    pass
        except OSError as error:  # the kernel knows no such name or inode: nothing to forget
            _log.debug("nothing to invalidate for %s: %s", type(op).__name__, error)


def _forget_attributes(inos: Iterable[int]) -> None:
    """Let the kernel ask again for the attributes of directories, at once and whoever calls.

    That takes no lock on an inode or a page, and waits for no request (linux/fs/fuse/inode.c,
    ``fuse_reverse_inval_inode`` with a negative offset): unlike everything else that is told, a handler may say it
    before it answers. What the kernel has asked before and hears after is not kept.
    """
    for ino in inos:
        try:
            pyfuse3.invalidate_inode(pyfuse3.InodeT(ino), attr_only=True)
        except OSError as error:  # as above
            _log.debug("no attributes to invalidate of inode %d: %s", ino, error)


def _extend(ends: Sequence[_Byte]) -> None:
    """Give the kernel the last byte of files: where it takes one for shorter, it does so no more."""
    for end in ends:
        try:
            pyfuse3.notify_store(pyfuse3.InodeT(end.ino), end.offset, end.value)
        except OSError as error:  # as above
            _log.debug("cannot tell the kernel the size of inode %d: %s", end.ino, error)


_IN_A_CONTAINER = "in a container pass --device /dev/fuse --cap-add SYS_ADMIN --security-opt apparmor=unconfined"


def check_device() -> None:
    """Raise FuseUnavailable if this process cannot open ``/dev/fuse``: better known before anything else is done."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        raise FuseUnavailable(
            f"cannot open /dev/fuse: {error.strerror}; load the fuse module, and {_IN_A_CONTAINER}"
        ) from None


def _refusal(mountpoint: str, why: str) -> VfsdError:
    """Return what it means that libfuse could not mount, saying *why*: no rights at all, or something at this place."""
    if os.strerror(errno.EPERM) in why:
        return FuseUnavailable(f"cannot mount at {mountpoint}: {why}; this process may not mount: {_IN_A_CONTAINER}")
    return MountpointError(f"cannot mount at {mountpoint}: {why}")


@contextmanager
def _stderr_of_libfuse() -> Iterator[str]:
    """Collect what libfuse prints instead of returning: yields the file it goes to."""
    kept = os.dup(2)
    with tempfile.NamedTemporaryFile(prefix="vfsd-") as collected:
        os.dup2(collected.fileno(), 2)
        try:
            yield collected.name
        finally:
            os.dup2(kept, 2)
            os.close(kept)
