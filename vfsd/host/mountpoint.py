"""Mountpoints seen from outside: what is at a path, how to prepare it, and how to unmount it.

A system call on a vfsd mount hangs if its daemon is frozen. So nothing here makes one at a mountpoint of vfsd, except
:func:`health`: in a thread of its own, with a time limit.
"""

import contextlib
import ctypes
import enum
import errno
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Collection

from vfsd.errors import MountBusy, MountpointError, UsageError, clause
from vfsd.host.holders import holders
from vfsd.host.mount_table import Mount, is_below, mount_at, mounts, own_mount_at
from vfsd.shell import quoted

__all__ = [
    "Health",
    "Mount",
    "absolute",
    "beside_mounts",
    "check_usable",
    "clean_up",
    "create",
    "detach",
    "health",
    "lies_within",
    "mount_at",
    "mounts",
    "own_mount_at",
    "remove",
    "unmount",
]

_PROBE_SECONDS = 2.0
_MNT_DETACH = 2
_TRIES = 20
_PAUSE_SECONDS = 0.05
_MOST_LINKS = 40
"""Most symbolic links in the resolution of one path, as in the kernel (:manpage:`path_resolution(7)`)."""


class Health(enum.Enum):
    """How a file system answers a system call."""

    ALIVE = enum.auto()
    DEAD = enum.auto()
    """Its daemon has ended: ENOTCONN, "Transport endpoint is not connected"."""
    SILENT = enum.auto()
    """No answer in time: its daemon is frozen or very busy."""


def absolute(path: str, *, stops: Collection[str] = ()) -> str:
    """Return *path* as an absolute path with all symbolic links resolved. Components that do not exist are kept.

    The only system call is :manpage:`readlink(2)` of each component. The kernel answers it for a mountpoint itself
    without asking the file system mounted there, whose daemon may be dead. Nothing at or below *stops* is examined.
    Raises MountpointError for a loop of links, and for a relative *path* if the current directory is gone; UsageError
    if *path* is empty: to the kernel that is no path, and it was probably a shell variable that is not set.
    """
    if not path:
        raise UsageError("MOUNTPOINT is empty: name the directory of the mount")
    resolved, rest, links = "/", _absolute_text(path).split("/")[::-1], 0
    while rest and resolved not in stops:
        name = rest.pop()
        resolved = os.path.dirname(resolved) if name == ".." else os.path.normpath(os.path.join(resolved, name))
        target = "" if resolved in stops else _link_target(resolved)
        if target:
            links += 1
            if links > _MOST_LINKS:
                raise MountpointError(f"{path}: {os.strerror(errno.ELOOP)}")
            resolved = "/" if target.startswith("/") else os.path.dirname(resolved)
            rest += target.split("/")[::-1]
    return os.path.normpath(os.path.join(resolved, *rest[::-1]))


def beside_mounts(path: str) -> str:
    """Return *path* as :func:`absolute` does, without asking any vfsd mount: it may be frozen."""
    return absolute(path, stops={mount.mountpoint for mount in mounts() if mount.scope is not None})


def _absolute_text(path: str) -> str:
    """Return *path* as an absolute path, by its text. Raises MountpointError if the current directory is gone."""
    try:
        return os.path.abspath(path)
    except OSError as error:
        raise MountpointError(
            f"{path}: the current directory cannot be told: {error.strerror}; cd elsewhere, or give an absolute path"
        ) from None


def lies_within(path: str, mountpoint: str) -> bool:
    """Return whether *path* lies at or below *mountpoint* (absolute) when the mount is there."""
    return is_below(absolute(path, stops=(mountpoint,)), mountpoint)


def health(path: str) -> Health:
    """Call :manpage:`statvfs(3)` on *path*, and return how the file system answers within 2 s."""
    answers: list[Health] = []

    def probe() -> None:
        try:
            os.statvfs(path)
        except OSError as error:
            answers.append(Health.DEAD if error.errno == errno.ENOTCONN else Health.ALIVE)
        else:
            answers.append(Health.ALIVE)

    thread = threading.Thread(target=probe, daemon=True)
    thread.start()
    thread.join(_PROBE_SECONDS)
    return answers[0] if answers else Health.SILENT


def clean_up(path: str) -> list[str]:
    """Detach what dead daemons have left mounted at *path*. Return a line for each.

    Raises MountpointError if a live daemon serves *path*.
    """
    notes = []
    while (mount := mount_at(path)) is not None and mount.scope is not None:  # there may be several, one over the other
        if health(path) is not Health.DEAD:
            raise MountpointError(
                f"{path}: scope {mount.scope} is mounted there; unmount it first: vfsd umount {quoted(path)}"
            )
        detach(path)
        notes.append(f"cleaned up {path}: a dead daemon had left scope {mount.scope} mounted there")
    return notes


def create(path: str, *, parents: bool) -> list[str]:
    """Create the directory *path* if there is nothing; with *parents* those above it too. Return what was created.

    Raises MountpointError; then nothing is created.
    """
    missing = _missing(path)
    if len(missing) > 1 and not parents:
        above = os.path.dirname(missing[0])
        raise MountpointError(f"{path}: {above} has no {os.path.basename(missing[0])}: correct it, or add --parents")
    created: list[str] = []
    try:
        for directory in missing:
            os.mkdir(directory)
            created.append(directory)
    except OSError as error:
        remove(created)
        raise MountpointError(f"{path}: {error.strerror}") from None
    return created


def _missing(path: str) -> list[str]:
    """Return the directories that *path* lacks, the highest first."""
    missing: list[str] = []
    while not os.path.lexists(path):
        missing.insert(0, path)
        path = os.path.dirname(path)
    return missing


def remove(created: list[str]) -> None:
    """Remove the directories *created* again, the deepest first. One that is in use stays."""
    with contextlib.suppress(OSError):
        for directory in reversed(created):
            os.rmdir(directory)


def check_usable(path: str, *, nonempty: bool) -> None:
    """Raise MountpointError if *path* is not a directory, or if it is not empty (unless *nonempty*)."""
    try:
        if not os.path.isdir(path):
            raise MountpointError(f"{path}: not a directory")
        if not nonempty and os.listdir(path):
            raise MountpointError(f"{path}: not empty; mount elsewhere, or hide what is there with -o nonempty")
    except OSError as error:
        raise MountpointError(f"{path}: {error.strerror}") from None


def detach(path: str) -> None:
    """Remove a mount from the mount table at once, even if it is busy (``umount -l``). Raises MountpointError."""
    _unmount(path, lazy=True)


def unmount(path: str) -> None:
    """Unmount *path*. Raises MountBusy, which names the processes that use it, or MountpointError.

    If no process can be named, the mount was probably used for a moment only (``df``, monitoring). Then this tries
    again for one second.
    """
    for _ in range(_TRIES):
        try:
            _unmount(path, lazy=False)
        except MountBusy:
            if holders(path):
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return
    _unmount(path, lazy=False)


def _unmount(path: str, *, lazy: bool) -> None:
    if os.geteuid() == 0:
        _umount2(path, _MNT_DETACH if lazy else 0)
        return
    helper = shutil.which("fusermount3") or shutil.which("fusermount") or "fusermount3"
    command = [helper, "-u", *(["-z"] if lazy else []), "--", path]
    try:
        result = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 (no shell)
    except OSError as error:
        raise MountpointError(f"cannot unmount {path}: {helper}: {error.strerror}") from None
    if result.returncode:
        why = clause(os.fsdecode(result.stderr))
        if why.endswith(os.strerror(errno.EBUSY)):
            raise _busy(path)
        raise MountpointError(f"cannot unmount {path}: {why}")


def _umount2(path: str, flags: int) -> None:
    """Call :manpage:`umount2(2)`. Raises MountBusy, MountpointError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(path), flags) == 0:
        return
    number = ctypes.get_errno()
    if number == errno.EBUSY:
        raise _busy(path)
    raise MountpointError(f"cannot unmount {path}: {os.strerror(number)}")


def _busy(path: str) -> MountBusy:
    held = holders(path)
    names = ", ".join(holder.name for holder in held) or "a process of another user or in another pid namespace"
    remedy = "cd out of it" if held and all(holder.caller for holder in held) else "end that"
    return MountBusy(f"{path} is busy: held by {names}; {remedy}, or detach it with vfsd umount --lazy {quoted(path)}")


def _link_target(path: str) -> str:
    """Return the target of the symbolic link *path*, or "" if it is none."""
    try:
        return os.readlink(path)
    except OSError:
        return ""
