"""Mounting and serving one FUSE session. pyfuse3 keeps its session in globals, so a process can have only one."""

import errno
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyfuse3
import trio

from vfsd.config import MountConfig
from vfsd.errors import FuseUnavailable, MountpointError, VfsdError, clause
from vfsd.fuse.device import why_not_mounted
from vfsd.fuse.guard import Layer, install
from vfsd.fuse.idle_poll import IdlePoll
from vfsd.fuse.kernel_cache import FuseKernelCache
from vfsd.fuse.operations import Operations
from vfsd.fuse.replies import Replies
from vfsd.fuse.root_references import RootReferenceLayer
from vfsd.fuse.trace import Tracer
from vfsd.scope.volume import Volume
from vfsd.seeds.root_references import RootReferences

_log = logging.getLogger(__name__)

_MAX_TASKS = 1 << 22
"""Most requests that are served at the same time: as many as Linux can have threads (:manpage:`proc(5)`, pid_max).

A request that waits for the store keeps its task. If no task were left, a reader would wait for the writers. The kernel
queues all requests in one line, so a smaller number cannot keep any task for readers: a task that reads the next
request does not know what it will be. Tasks are started when they are needed.
"""
_MIN_TASKS = 8
"""Idle tasks that are kept, so that a burst of requests need not start new ones."""


class FuseSession:
    """One mount of *volume* as *config* says.

    *kernel* is told when the mount exists. With *references*, a layer around the handlers answers lookups at the root
    that mean a file of a skill.
    """

    def __init__(
        self, volume: Volume, config: MountConfig, kernel: FuseKernelCache, references: RootReferences | None
    ) -> None:
        self._volume = volume
        self._config = config
        self._kernel = kernel
        self._references = references

    def mount(self) -> None:
        """Mount. Requests wait in the kernel until :meth:`serve` runs. Raises FuseUnavailable, MountpointError."""
        operations = self._operations()
        with _stderr_of_libfuse() as printed:
            try:
                pyfuse3.init(operations, self._config.mountpoint, mount_options(self._config))
            except RuntimeError as error:
                why = Path(printed).read_text(errors="replace").strip().replace("\n", "; ") or str(error)
                raise _mount_error(self._config.mountpoint, why) from None
        self._kernel.mounted()

    def _operations(self) -> Operations:
        """Return the handlers, with the layers around them that this mount needs."""
        replies = Replies(self._config.owner)
        operations = Operations(self._volume, replies, self._kernel, xattrs=self._config.xattr)
        layers: list[Layer] = []
        if self._references is not None:
            layers.append(RootReferenceLayer(self._references, self._volume, replies, operations))
        if self._config.debug:
            layers.append(Tracer())
        install(operations, layers)
        return operations

    async def serve(self) -> None:
        """Answer requests until the mount ends or :meth:`stop` is called. Requests under way are answered first."""
        idle_poll = IdlePoll(lambda: self._volume.pending > 0)
        trio.lowlevel.add_instrument(idle_poll)
        try:
            await pyfuse3.main(min_tasks=_MIN_TASKS, max_tasks=_MAX_TASKS)
        finally:
            trio.lowlevel.remove_instrument(idle_poll)

    def stop(self) -> None:
        """Make :meth:`serve` return once all requests under way are answered."""
        pyfuse3.terminate()

    def close(self, *, unmount: bool) -> None:
        """End the session. Programs that still have files open get ENOTCONN.

        With *unmount* whatever is at the mountpoint is unmounted: the caller must know that it is this mount.
        """
        pyfuse3.close(unmount=unmount)


def mount_options(config: MountConfig) -> set[str]:
    """Return the mount options for libfuse (:manpage:`mount.fuse3(8)`). No two of them contradict each other."""
    names = {"default_permissions", f"fsname=vfsd:{config.scope}", "subtype=vfsd", *config.options}
    return names | {"ro"} if config.read_only else names


def _mount_error(mountpoint: str, why: str) -> VfsdError:
    """Return the error for libfuse's message *why*: this process may not mount at all, or not at *mountpoint*."""
    if os.strerror(errno.EPERM) in why:
        return FuseUnavailable(f"cannot mount at {mountpoint}: {why_not_mounted(clause(why))}")
    return MountpointError(f"cannot mount at {mountpoint}: {clause(why)}")


@contextmanager
def _stderr_of_libfuse() -> Iterator[str]:
    """Redirect file descriptor 2 to a temporary file, and yield the path of that file.

    libfuse prints why it cannot mount, and does not return it.
    """
    stderr = os.dup(2)
    with tempfile.NamedTemporaryFile(prefix="vfsd-") as output:
        os.dup2(output.fileno(), 2)
        try:
            yield output.name
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
