"""The registered daemons of this user that live: their process, and whether their mount is still in a mount table.

A mount may leave the mount table while something still uses it: a lazy unmount with open files, or another mount
namespace (a container) that has the mount too. The daemon then goes on, and keeps the scope.
"""

import os
import select
import signal
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vfsd.errors import MountBusy
from vfsd.host import registrations
from vfsd.host.keepers import UNSEEN, Keeper, keepers
from vfsd.host.mount_table import mounts
from vfsd.host.registrations import Registration

_CONNECT_SECONDS = 2.0
_END_SECONDS = 30.0
_CREDENTIALS = struct.Struct("3i")
"""pid, uid, gid of a peer (:manpage:`unix(7)`, SO_PEERCRED)."""


def serving_process(socket_path: Path) -> tuple[int, int] | None:
    """Return the pid of the process that listens at *socket_path*, and a descriptor of it (:manpage:`pidfd_open(2)`).

    The answer is None if no process listens. The kernel knows who does (:manpage:`unix(7)`, SO_PEERCRED). The
    registered pid is not enough: another process may have it by now.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_CONNECT_SECONDS)
        try:
            connection.connect(os.fspath(socket_path))
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            pid, _, _ = _CREDENTIALS.unpack(credentials)
            return pid, os.pidfd_open(pid)
        except OSError:
            return None


def has_ended(descriptor: int, seconds: float) -> bool:
    """Return whether the process of *descriptor* ends within *seconds*."""
    return bool(select.select([descriptor], [], [], max(0.0, seconds))[0])


@dataclass(frozen=True, slots=True)
class Detached:
    """A living daemon whose mount is in no mount table that it sees, and what is known to keep it alive."""

    registration: Registration
    pid: int
    keepers: list[Keeper]

    @property
    def held_by(self) -> str:
        """What keeps the daemon alive, for people."""
        return ", ".join(keeper.describe() for keeper in self.keepers) or UNSEEN

    def describe(self) -> str:
        """Return what the operator has to know, and the ways out."""
        remedies = "".join(f" ({remedy})" for keeper in self.keepers if (remedy := keeper.remedy()))
        return (
            f"{self.registration.mountpoint} is unmounted here, but its daemon (pid {self.pid}) goes on: held"
            f" by {self.held_by}; end that{remedies}, or let vfsd mount take scope {self.registration.scope} back"
        )

    def end(self) -> None:
        """End the daemon, as SIGTERM does: it stores what is in flight. Raises MountBusy if it does not end."""
        process = serving_process(registrations.socket_of(self.registration))
        if process is None:
            return
        _, descriptor = process
        try:
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
            if not has_ended(descriptor, _END_SECONDS):
                raise MountBusy(f"{self.describe()}: it was told to end and has not; its log says why")
        except (ProcessLookupError, PermissionError):
            pass  # it has ended, or is another user's: then the store says who has the scope
        finally:
            os.close(descriptor)


def detached() -> Iterator[Detached]:
    """Yield the living daemons of this user that are mounted neither here nor in their own mount namespace."""
    here = {mount.device for mount in mounts()}
    for registration in registrations.every():
        if registration.device and registration.device not in here:
            pid = _pid_of(registration)
            if pid is not None and not _sees(pid, registration.device):
                yield Detached(registration, pid, keepers(registration.device, registration.mountpoint))


def detached_at(mountpoint: str) -> Detached | None:
    """Return the detached daemon that is registered at *mountpoint*, or None."""
    return next((found for found in detached() if found.registration.mountpoint == mountpoint), None)


def _pid_of(registration: Registration) -> int | None:
    process = serving_process(registrations.socket_of(registration))
    if process is None:
        return None
    os.close(process[1])
    return process[0]


def _sees(pid: int, device: str) -> bool:
    """Return whether *pid* sees a mount of *device*. If that cannot be told, assume that it does."""
    try:
        return any(mount.device == device for mount in mounts(pid))
    except OSError:
        return True
