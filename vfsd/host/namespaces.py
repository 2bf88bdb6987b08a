"""Other mount namespaces that have a file system mounted: those of processes, and those that a file keeps.

A namespace lives without a process if its file of ``/proc/PID/ns/mnt`` is bound somewhere (``unshare --mount=FILE``),
or if a process has that file open.
"""

import ctypes
import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from vfsd.host.mount_table import mounts
from vfsd.host.processes import PROC, link_target, open_files, process_name, processes
from vfsd.shell import quoted

_CLONE_NEWNS = 0x20000
_ENTER_SECONDS = 2.0
_KIND = "mnt:["
"""How the name of a mount namespace begins (:manpage:`namespaces(7)`)."""


class HeldElsewhere(NamedTuple):
    """A mount in another mount namespace, and one process that lives there."""

    pid: int
    mountpoint: str
    certain: bool = True

    def describe(self) -> str:
        """Return one phrase for people."""
        return f"{process_name(self.pid)} at {self.mountpoint} in another mount namespace"

    def remedy(self) -> str:
        """Return the command that unmounts it there."""
        return f"nsenter --target {self.pid} --mount umount {quoted(self.mountpoint)}"


class Kept(NamedTuple):
    """A mount in a mount namespace without a process, which *file* keeps. *certain*: this process has seen it there."""

    file: str
    mountpoint: str
    certain: bool

    def describe(self) -> str:
        """Return one phrase for people."""
        perhaps = "" if self.certain else "perhaps "
        return f"{perhaps}a mount namespace without a process, which the file {self.file} keeps"

    def remedy(self) -> str:
        """Return the command that unmounts it there."""
        return f"nsenter --mount={quoted(self.file)} umount {quoted(self.mountpoint)}"


def held_elsewhere(device: str) -> list[HeldElsewhere]:
    """Return where other mount namespaces have the file system *device* mounted, with one process for each namespace.

    A namespace whose processes belong to other users is left out, unless this process is root's.
    """
    known, found = {namespace_of("self")}, []
    for pid in processes():
        namespace = namespace_of(pid)
        if not namespace or namespace in known:
            continue
        try:
            there = _mountpoints(pid, device)
        except OSError:  # it has just ended: another process of its namespace may still live
            continue
        known.add(namespace)
        found += [HeldElsewhere(pid, mountpoint) for mountpoint in there[:1]]
    return found


def kept(device: str, mountpoint: str) -> list[Kept]:
    """Return the namespaces without a process that have the file system *device* mounted.

    One that this process may not enter could have it too, at *mountpoint*: that is returned as uncertain.
    """
    found = []
    for file in _files_of_lonely_namespaces():
        with _inside(file) as pid:
            there = [mountpoint] if pid is None else _mountpoints(pid, device)
            found += [Kept(file, where, certain=pid is not None) for where in there[:1]]
    return found


def namespace_of(process: int | str) -> str:
    """Return the name of the mount namespace of *process*, or "" if it is not to be seen."""
    return link_target(PROC / str(process) / "ns" / "mnt")


def _mountpoints(process: int, device: str) -> list[str]:
    return [mount.mountpoint for mount in mounts(process) if mount.device == device]


def _files_of_lonely_namespaces() -> Iterator[str]:
    """Yield a file for each mount namespace in which no process lives, as far as that is to be seen."""
    known = {namespace_of("self"), *map(namespace_of, processes())}
    for name, file in (*_bound(), *_opened()):
        if name not in known:
            known.add(name)
            yield file


def _bound() -> Iterator[tuple[str, str]]:
    """Yield name and file of each mount namespace that is bound to a file here."""
    table = mounts()
    return (
        (mount.root, mount.mountpoint) for mount in table if mount.fstype == "nsfs" and mount.root.startswith(_KIND)
    )


def _opened() -> Iterator[tuple[str, str]]:
    """Yield name and file of each mount namespace that a process has open."""
    links = (link for pid in processes() for link in open_files(PROC / str(pid)))
    return ((name, str(link)) for link in links if (name := link_target(link)).startswith(_KIND))


@contextmanager
def _inside(file: str) -> Iterator[int | None]:
    """Yield the pid of a new process in the namespace of *file*, or None if it may not go there.

    /proc shows what a namespace has mounted only by a process in it. That one opens *file*, whose path may hang.
    """
    libc, (reading, writing) = ctypes.CDLL(None), os.pipe()
    child = os.fork()
    if child == 0:
        _enter_and_wait(libc, file, writing)
    os.close(writing)
    try:
        ready = select.select([reading], [], [], _ENTER_SECONDS)[0]
        yield child if ready and os.read(reading, 1) else None
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)


def _enter_and_wait(libc: ctypes.CDLL, file: str, pipe: int) -> None:
    """Enter the namespace of *file*, say so by one byte in *pipe*, and wait to be killed. Does not return."""
    try:
        if libc.setns(os.open(file, os.O_RDONLY | os.O_CLOEXEC), _CLONE_NEWNS) == 0:
            os.write(pipe, b".")
            signal.pause()
    finally:
        os._exit(1)
