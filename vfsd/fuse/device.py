"""Whether this process may mount FUSE file systems, and if not, what to change: on a host or in a container.

On a host the rights of ``/dev/fuse`` or a missing module are the reason, in a container what its engine passes on.
Advice for the other place leads an operator astray.
"""

import os
import stat
from pathlib import Path

from vfsd.errors import FuseUnavailable

DEVICE = Path("/dev/fuse")
_ENGINE_OPTIONS = "start the container with --device /dev/fuse --cap-add SYS_ADMIN --security-opt apparmor=unconfined"
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
        raise FuseUnavailable(f"cannot open {DEVICE}: {error.strerror}; {_remedy(error)}") from None


def why_not_mounted(why: str) -> str:
    """Return *why* a mount failed for lack of rights, with what to change."""
    if is_container():
        return f"{why}; {_ENGINE_OPTIONS}"
    return f"{why}; this user may not mount: fusermount3 must be installed set-user-ID root, or run vfsd as root"


def _remedy(error: OSError) -> str:
    if is_container():
        return _ENGINE_OPTIONS
    if isinstance(error, FileNotFoundError):
        return "load the module: modprobe fuse"
    if not isinstance(error, PermissionError):
        return "see the kernel's log"
    found = DEVICE.stat()
    owner = f"uid {found.st_uid} and gid {found.st_gid}"
    return (
        f"it belongs to {owner}, mode {stat.S_IMODE(found.st_mode):04o}; root can open it to all: chmod 0666 {DEVICE}"
    )
