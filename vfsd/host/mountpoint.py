"""Mountpoints from outside: the kernel's mount table, what is at a path, making it ready, and unmounting it.

It never touches a mounted file system in a way that could hang on a dead or frozen daemon, except in a thread of
its own with a time limit.
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
_TRIES, _PAUSE = 20, 0.05
_MOST_LINKS = 40
"""As for the kernel (:manpage:`path_resolution(7)`)."""


class Mount(NamedTuple):
    """A line of the mount table (:manpage:`proc_pid_mountinfo(5)`)."""

    mountpoint: str
    fstype: str
    source: str
    device: str

    @property
    def scope(self) -> str | None:
        """The scope, if this is a mount of ours."""
        return self.source.removeprefix(_SOURCE_PREFIX) if self.fstype == FSTYPE else None


class Health(enum.Enum):
    """What becomes of a question to a file system."""

    ALIVE = enum.auto()
    DEAD = enum.auto()
    """Its daemon is gone: ENOTCONN, "Transport endpoint is not connected"."""
    SILENT = enum.auto()
    """No answer in time: a frozen or very busy daemon."""


def mounts() -> list[Mount]:
    """Return the mount table, later mounts last."""
    return [_parsed(line) for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def _parsed(line: str) -> Mount:
    before, _, after = line.partition(" - ")
    fields, (fstype, source, *_) = before.split(" "), after.split(" ")
    return Mount(_unescaped(fields[4]), fstype, _unescaped(source), fields[2])


def _unescaped(text: str) -> str:
    """Undo the table's octal escapes of space, tab, newline and backslash."""
    raw = re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), os.fsencode(text))
    return os.fsdecode(raw)


def absolute(path: str, *, stop: str = "") -> str:
    """Return *path* absolute, with all links resolved, as far as it exists.

    It is only asked whether something is a link: for that the kernel does not ask a file system mounted right there,
    which may be dead. Nothing at or below *stop* is looked at. Raises MountpointError for links that go round.
    """
    place, rest, links = "/", os.path.abspath(path).split("/")[::-1], 0
    while rest and place != stop:
        name = rest.pop()
        place = os.path.dirname(place) if name == ".." else os.path.normpath(os.path.join(place, name))
        target = "" if place == stop else _target(Path(place))
        if target:
            links += 1
            if links > _MOST_LINKS:
                raise MountpointError(f"{path}: {os.strerror(errno.ELOOP)}")
            place = "/" if target.startswith("/") else os.path.dirname(place)
            rest += target.split("/")[::-1]
    return os.path.normpath(os.path.join(place, *rest[::-1]))


def lies_within(path: str, mountpoint: str) -> bool:
    """Whether *path*, once all is mounted, lies at or below *mountpoint* (absolute)."""
    return _is_below(absolute(path, stop=mountpoint), mountpoint)


def mount_at(path: str) -> Mount | None:
    """Return the topmost mount at *path* (absolute), or None."""
    return next((mount for mount in reversed(mounts()) if mount.mountpoint == path), None)


def own_mount_at(path: str) -> Mount:
    """Return our mount at *path* (absolute). Raises NotMounted if there is none."""
    mount = mount_at(path)
    if mount is None or mount.scope is None:
        raise NotMounted(f"{path}: no vfsd mount there" + (f", but {mount.fstype}" if mount else ""))
    return mount


def health(path: str) -> Health:
    """Ask the file system at *path* for its attributes, for two seconds at most."""
    answer: list[Health] = []

    def ask() -> None:
        try:
            os.statvfs(path)
        except OSError as error:
            answer.append(Health.DEAD if error.errno == errno.ENOTCONN else Health.ALIVE)
        else:
            answer.append(Health.ALIVE)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PROBE_SECONDS)
    return answer[0] if answer else Health.SILENT


def make_ready(path: str, *, nonempty: bool) -> list[str]:
    """Create or clean up what is at *path* so that a mount may go there; return what was done, a line each.

    Raises MountpointError.
    """
    notes = []
    while (mount := mount_at(path)) is not None and mount.scope is not None:  # several may lie upon each other
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
    """Take a mount out of the tree at once, however busy (``umount -l``). Raises MountpointError."""
    _unmount(path, lazy=True)


def unmount(path: str) -> None:
    """Unmount *path*. Raises MountBusy, naming who holds it, or MountpointError.

    Nobody to name is mostly someone who looks for a moment (``df``, monitoring): then it is tried for a second.
    """
    for _ in range(_TRIES):
        try:
            _unmount(path, lazy=False)
        except MountBusy:
            if holders(path):
                raise
            time.sleep(_PAUSE)
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
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (no shell)
    except OSError as error:
        raise MountpointError(f"cannot unmount {path}: {helper}: {error.strerror}") from None
    if done.returncode:
        if "busy" in done.stderr:
            raise _busy(path)
        raise MountpointError(f"cannot unmount {path}: {done.stderr.strip()}")


def _umount2(path: str, flags: int) -> None:
    """Call :manpage:`umount2(2)`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(path), flags) == 0:
        return
    number = ctypes.get_errno()
    if number == errno.EBUSY:
        raise _busy(path)
    raise MountpointError(f"cannot unmount {path}: {os.strerror(number)}")


def _busy(path: str) -> MountBusy:
    named = ", ".join(holders(path)) or "someone in another process namespace"
    return MountBusy(f"{path} is busy: held by {named}; end that, or detach it with vfsd umount --lazy {path}")


def holders(path: str) -> list[str]:
    """Return what keeps *path* busy: mounts below it, and processes, as "command (pid)". Asks only /proc."""
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
    """Return the paths that *process* holds: working directory, root, program, open files, mapped files."""
    links = [process / "cwd", process / "root", process / "exe"]
    paths = []
    try:
        links += list((process / "fd").iterdir())
        maps = (process / "maps").read_text(errors="surrogateescape").splitlines()
        paths += [fields[5] for fields in (line.split(maxsplit=5) for line in maps) if len(fields) > 5]  # noqa: PLR2004
    except OSError:  # it has just ended, or is not ours to look into
        pass
    return paths + [target for target in map(_target, links) if target]


def _target(link: Path) -> str:
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
