"""``vfsd umount``: unmount, and return when the mount has left the mount table and its daemon has ended."""

import os
import select
import socket
import struct
import time

import click

from vfsd.cli.output import echo
from vfsd.cli.parsing import parse_seconds
from vfsd.errors import MountBusy, UncleanEnd
from vfsd.host import mountpoint as mountpoints
from vfsd.host import registrations

_PAUSE_SECONDS = 0.02
_CONNECT_SECONDS = 2.0
_CREDENTIALS = struct.Struct("3i")
"""pid, uid, gid of a peer (:manpage:`unix(7)`, SO_PEERCRED)."""


@click.command()
@click.argument("mountpoint")
@click.option("--lazy", is_flag=True, help="Detach a busy mount at once; it ends when its last user closes it.")
@click.option("--timeout", default=30.0, type=float, show_default=True, help="Longest wait for the daemon, in seconds.")
def umount(mountpoint: str, lazy: bool, timeout: float) -> None:
    """Unmount MOUNTPOINT and wait until its daemon has ended."""
    parse_seconds("--timeout", timeout)
    path = mountpoints.absolute(mountpoint)
    mount = mountpoints.own_mount_at(path)
    daemon = _daemon_of(path)
    try:
        (mountpoints.detach if lazy else mountpoints.unmount)(path)
        deadline = time.monotonic() + timeout
        _wait_until_gone(mount, deadline)
        if daemon is not None and not lazy:
            _wait_for_end(daemon, deadline)
    finally:
        if daemon is not None:
            os.close(daemon)
    echo(f"unmounted {path}")


def _daemon_of(path: str) -> int | None:
    """Return a descriptor of the daemon's process (:manpage:`pidfd_open(2)`), or None if the daemon has ended.

    The kernel knows which process listens at the control socket (:manpage:`unix(7)`, SO_PEERCRED). The registered pid
    is not enough: another process may have it by now.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_CONNECT_SECONDS)
        try:
            connection.connect(os.fspath(registrations.socket_path(path)))
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            pid, _, _ = _CREDENTIALS.unpack(credentials)
            return os.pidfd_open(pid)
        except OSError:
            return None


def _wait_until_gone(mount: mountpoints.Mount, deadline: float) -> None:
    while mount in mountpoints.mounts():
        if time.monotonic() > deadline:
            raise MountBusy(f"{mount.mountpoint} is still in the mount table")
        time.sleep(_PAUSE_SECONDS)


def _wait_for_end(daemon: int, deadline: float) -> None:
    remaining = max(0.0, deadline - time.monotonic())
    if not select.select([daemon], [], [], remaining)[0]:
        raise UncleanEnd("unmounted, but the daemon has not ended: its log says why")
