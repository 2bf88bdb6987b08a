"""``vfsd umount``: returns when the mount is gone from the mount table and its daemon has ended."""

import os
import select
import time

import click

from vfsd import mountpoint as places
from vfsd import registry
from vfsd.errors import MountBusy, UncleanEnd

_PAUSE = 0.02


@click.command()
@click.argument("mountpoint")
@click.option("--lazy", is_flag=True, help="Detach it now, however busy; it ends when the last user lets go.")
@click.option("--timeout", default=30.0, show_default=True, help="Longest to wait for the daemon to end (s).")
def umount(mountpoint: str, lazy: bool, timeout: float) -> None:
    """Unmount MOUNTPOINT and wait until its daemon has ended."""
    path = places.absolute(mountpoint)
    mount = places.own_mount_at(path)
    registered = registry.registered(path)
    daemon = _open_process(registered.pid) if registered is not None else None
    try:
        (places.detach if lazy else places.unmount)(path)
        deadline = time.monotonic() + timeout
        _wait_until_gone(mount, deadline)
        if daemon is not None and not lazy:
            _wait_for_end(daemon, deadline)
    finally:
        if daemon is not None:
            os.close(daemon)
    click.echo(f"unmounted {path}")


def _open_process(pid: int) -> int | None:
    """Return a descriptor by which to wait for process *pid* (:manpage:`pidfd_open(2)`), or None if it has ended."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def _wait_until_gone(mount: places.Mount, deadline: float) -> None:
    while mount in places.mounts():
        if time.monotonic() > deadline:
            raise MountBusy(f"{mount.mountpoint} is still in the mount table")
        time.sleep(_PAUSE)


def _wait_for_end(daemon: int, deadline: float) -> None:
    remaining = max(0.0, deadline - time.monotonic())
    if not select.select([daemon], [], [], remaining)[0]:
        raise UncleanEnd("unmounted, but the daemon has not ended: its log says why")
