"""Whether this process may mount FUSE file systems, and if not, what to change: on a host or in a container.

On a host the rights of ``/dev/fuse`` or a missing module are the reason, in a container what its engine passes on.
Advice for the other place leads an operator astray.
"""

import grp
import os
import pwd
import stat
from collections.abc import Callable
from pathlib import Path

from vfsd.errors import FuseUnavailable

DEVICE = Path("/dev/fuse")
ENGINE_OPTIONS = "start the container with --device /dev/fuse --cap-add SYS_ADMIN --security-opt apparmor=unconfined"
MOUNT_RIGHTS = "this user may not mount: fusermount3 must be installed set-user-ID root, or run vfsd as root"
_FOR_GROUP = stat.S_IRGRP | stat.S_IWGRP
_FIRST_PROCESS = Path("/proc/1/environ")
_MARKS = (Path("/.dockerenv"), Path("/run/.containerenv"))
"""Files that Docker and Podman put into a container."""


def is_container() -> bool:
    """Return whether this process runs in a container, as far as that can be known."""
    return any(mark.exists() for mark in _MARKS) or _says_so(_FIRST_PROCESS, b"container=")


def _says_so(file: Path, variable: bytes) -> bool:
    """Return whether the first process was started with *variable*: systemd-nspawn, LXC and Podman set it."""
    try:
        return any(entry.startswith(variable) for entry in file.read_bytes().split(b"\0"))
    except OSError:
        return False


def check_device() -> None:
    """Raise FuseUnavailable if this process cannot open ``/dev/fuse``. Call it before anything else is done."""
    try:
        os.close(os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        remedy = ENGINE_OPTIONS if is_container() else remedy_on_host(error)
        raise FuseUnavailable(f"cannot open {DEVICE}: {error.strerror}; {remedy}") from None


def why_not_mounted(why: str) -> str:
    """Return *why* a mount failed for lack of rights, with what to change."""
    return f"{why}; {ENGINE_OPTIONS if is_container() else MOUNT_RIGHTS}"


def remedy_on_host(error: OSError) -> str:
    """Return what to change on a host that answered *error* for the device."""
    if isinstance(error, FileNotFoundError):
        return "load the module: modprobe fuse"
    if not isinstance(error, PermissionError):
        return "the kernel's log says more: dmesg"
    return describe_rights(DEVICE.stat())


def describe_rights(found: os.stat_result) -> str:
    """Return whose the device is that *found* describes, its mode, and what lets this user open it."""
    user, group = _name(found.st_uid, _user), _name(found.st_gid, _group)
    facts = f"it belongs to {user}:{group}, mode {stat.S_IMODE(found.st_mode):04o}"
    if found.st_gid and found.st_mode & _FOR_GROUP == _FOR_GROUP:
        return f"{facts}; add this user to group {group} and log in again, or as root: chmod 0666 {DEVICE}"
    return f"{facts}; as root: chmod 0666 {DEVICE}"


def _user(uid: int) -> str:
    """Return the name of user *uid*. Raises KeyError."""
    return pwd.getpwuid(uid).pw_name


def _group(gid: int) -> str:
    """Return the name of group *gid*. Raises KeyError."""
    return grp.getgrgid(gid).gr_name


def _name(number: int, names: Callable[[int], str]) -> str:
    try:
        return names(number)
    except KeyError:
        return str(number)
