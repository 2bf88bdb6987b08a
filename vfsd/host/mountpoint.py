"""Mountpoints seen from outside: the mount table, what is at a path, how to prepare it, and how to unmount it.

A system call on a vfsd mount hangs if its daemon is frozen. So nothing here makes one at a mountpoint of vfsd, except
:func:`health`: in a thread of its own, with a time limit.
"""

import ctypes
import enum
import errno
import os
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import NamedTuple

from vfsd.errors import MountBusy, MountpointError, NotMounted

FSTYPE = "fuse.vfsd"
_SOURCE_PREFIX = "vfsd:"
_PROBE_SECONDS = 2.0
_MNT_DETACH = 2
_TRIES = 20
_PAUSE_SECONDS = 0.05
_MOST_LINKS = 40
"""Most symbolic links in the resolution of one path, as in the kernel (:manpage:`path_resolution(7)`)."""


class Mount(NamedTuple):
    """A line of the mount table (:manpage:`proc_pid_mountinfo(5)`). *device* is ``major:minor``."""

    mountpoint: str
    fstype: str
    source: str
    device: str

    @property
    def scope(self) -> str | None:
        """The scope, or None if this is not a vfsd mount."""
        return self.source.removeprefix(_SOURCE_PREFIX) if self.fstype == FSTYPE else None


class Health(enum.Enum):
    """How a file system answers a system call."""

    ALIVE = enum.auto()
    DEAD = enum.auto()
    """Its daemon has ended: ENOTCONN, "Transport endpoint is not connected"."""
    SILENT = enum.auto()
    """No answer in time: its daemon is frozen or very busy."""


def mounts() -> list[Mount]:
    """Return the mount table, the latest mount last."""
    return [_parsed(line) for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def _parsed(line: str) -> Mount:
    before, _, after = line.partition(" - ")
    fields, (fstype, source, *_) = before.split(" "), after.split(" ")
    return Mount(_unescaped(fields[4]), fstype, _unescaped(source), fields[2])


def _unescaped(text: str) -> str:
    """Return *text* without the octal escapes that the table has for space, tab, newline and backslash."""
    raw = re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), os.fsencode(text))
    return os.fsdecode(raw)


def absolute(path: str, *, stop: str = "") -> str:
    """Return *path* as an absolute path with all symbolic links resolved. Components that do not exist are kept.

    The only system call is :manpage:`readlink(2)` of each component. The kernel answers it for a mountpoint itself
    without asking the file system mounted there, whose daemon may be dead. Nothing at or below *stop* is examined.
    Raises MountpointError for a loop of links.
    """
    resolved, rest, links = "/", os.path.abspath(path).split("/")[::-1], 0
    while rest and resolved != stop:
        name = rest.pop()
        resolved = os.path.dirname(resolved) if name == ".." else os.path.normpath(os.path.join(resolved, name))
        target = "" if resolved == stop else _link_target(Path(resolved))
        if target:
            links += 1
            if links > _MOST_LINKS:
                raise MountpointError(f"{path}: {os.strerror(errno.ELOOP)}")
            resolved = "/" if target.startswith("/") else os.path.dirname(resolved)
            rest += target.split("/")[::-1]
    return os.path.normpath(os.path.join(resolved, *rest[::-1]))


def lies_within(path: str, mountpoint: str) -> bool:
    """Return whether *path* lies at or below *mountpoint* (absolute) when the mount is there."""
    return _is_below(absolute(path, stop=mountpoint), mountpoint)


def mount_at(path: str) -> Mount | None:
    """Return the topmost mount at *path* (absolute), or None."""
    return next((mount for mount in reversed(mounts()) if mount.mountpoint == path), None)


def own_mount_at(path: str) -> Mount:
    """Return the vfsd mount at *path* (absolute). Raises NotMounted if there is none."""
    mount = mount_at(path)
    if mount is None or mount.scope is None:
        raise NotMounted(f"{path}: no vfsd mount there" + (f", but {mount.fstype}" if mount else ""))
    return mount


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


def make_ready(path: str, *, nonempty: bool) -> list[str]:
    """Prepare *path* for a mount: detach mounts of dead daemons, create the directory. Return a line for each step.

    Raises MountpointError if a live daemon serves *path*, if it is not a directory, or if it is not empty
    (unless *nonempty*).
    """
    notes = []
    while (mount := mount_at(path)) is not None and mount.scope is not None:  # there may be several, one over the other
        if health(path) is not Health.DEAD:
            raise MountpointError(f"{path}: scope {mount.scope} is mounted there; unmount it first: vfsd umount {path}")
        detach(path)
        notes.append(f"cleaned up {path}: a dead daemon had left scope {mount.scope} mounted there")
    try:
        if not os.path.lexists(path):
            os.makedirs(path)
            notes.append(f"created {path}")
        if not os.path.isdir(path):
            raise MountpointError(f"{path}: not a directory")
        if not nonempty and os.listdir(path):
            raise MountpointError(f"{path}: not empty; mount elsewhere, or hide what is there with -o nonempty")
    except OSError as error:
        raise MountpointError(f"{path}: {error.strerror}") from None
    return notes


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
        result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (no shell)
    except OSError as error:
        raise MountpointError(f"cannot unmount {path}: {helper}: {error.strerror}") from None
    if result.returncode:
        if "busy" in result.stderr:
            raise _busy(path)
        raise MountpointError(f"cannot unmount {path}: {result.stderr.strip()}")


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
    names = ", ".join(holders(path)) or "a process in another pid namespace"
    return MountBusy(f"{path} is busy: held by {names}; end that, or detach it with vfsd umount --lazy {path}")


def holders(path: str) -> list[str]:
    """Return what keeps *path* busy: mounts below it, and processes as "command (pid)". Reads only /proc."""
    processes = (process for process in Path("/proc").iterdir() if process.name.isdigit())
    return [
        *(f"the mount at {mount.mountpoint}" for mount in mounts() if mount.mountpoint.startswith(f"{path}/")),
        *(
            f"{_command(process)} ({process.name})"
            for process in processes
            if any(_is_below(target, path) for target in _references(process))
        ),
    ]


def _references(process: Path) -> list[str]:
    """Return the paths that *process* uses: working directory, root, program, open files, mapped files."""
    links = [process / "cwd", process / "root", process / "exe"]
    paths = []
    try:
        links += list((process / "fd").iterdir())
        maps = (process / "maps").read_text(errors="surrogateescape").splitlines()
        paths += [fields[5] for fields in (line.split(maxsplit=5) for line in maps) if len(fields) > 5]  # noqa: PLR2004
    except OSError:  # it has just ended, or belongs to another user
        pass
    return paths + [target for target in map(_link_target, links) if target]


def _link_target(link: Path) -> str:
    """Return the target of *link*, or "" if it is not a symbolic link."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _is_below(target: str, path: str) -> bool:
    return target == path or target.startswith(path.rstrip("/") + "/")


def _command(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return "?"
