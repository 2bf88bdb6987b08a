"""``vfsd umount``: unmount, and return when the mount has left the mount table and its daemon has ended."""

import os
import time

import click

from vfsd.cli.completers import complete_mountpoints
from vfsd.cli.help import Command, option
from vfsd.cli.output import say
from vfsd.cli.parsing import parse_seconds
from vfsd.client.connection import NoAnswer, ask
from vfsd.errors import MountBusy, MountpointError, NotMounted, UncleanEnd
from vfsd.host import mountpoint as mountpoints
from vfsd.host import registrations
from vfsd.host.daemons import Detached, detached_at, has_ended, serving_process
from vfsd.host.keepers import keepers
from vfsd.shell import quoted

_PAUSE_SECONDS = 0.02
_LOOK_SECONDS = 1.0
_HELD_SECONDS = 10.0
"""How long something may hold the removed mount before that is an error: many namespaces live for a moment only."""


@click.command(cls=Command, examples=["vfsd umount mnt", "vfsd umount --lazy /mnt/run-42"])
@click.argument("mountpoint", shell_complete=complete_mountpoints)
@option("--lazy", is_flag=True, help="Detach a busy mount at once; it ends when its last user closes it.")
@option(
    "--timeout", metavar="SECONDS", default=30.0, type=float, show_default=True, help="Longest wait for the daemon."
)
def umount(mountpoint: str, lazy: bool, timeout: float) -> None:
    """Unmount MOUNTPOINT and wait until its daemon has ended."""
    parse_seconds("--timeout", timeout)
    path = mountpoints.beside_mounts(mountpoint)
    os.chdir("/")  # otherwise this command itself might keep the mount busy
    mount = _mount_at(path)
    process = serving_process(registrations.socket_path(path))
    try:
        _unmount(path, lazy=lazy)
        deadline = time.monotonic() + timeout
        _wait_until_gone(mount, deadline)
        if process is not None and not lazy:
            _wait_for_end(mount, process, deadline)
    finally:
        if process is not None:
            os.close(process[1])
    say(f"unmounted {path}")


def _mount_at(path: str) -> mountpoints.Mount:
    """Return the mount at *path* if this user may remove it. Raises NotMounted, MountBusy, MountpointError."""
    try:
        mount = mountpoints.own_mount_at(path)
    except NotMounted:
        daemon = detached_at(path)
        if daemon is None:
            raise
        raise MountBusy(daemon.describe()) from None
    if os.geteuid() not in {0, mount.user}:
        raise MountpointError(f"{path}: uid {mount.user} has mounted it: only that user or root can unmount it")
    return mount


def _unmount(path: str, *, lazy: bool) -> None:
    """Unmount *path*. The mount of a dead daemon is detached if it is busy: nobody can use it."""
    try:
        (mountpoints.detach if lazy else mountpoints.unmount)(path)
    except MountBusy:
        if mountpoints.health(path) is not mountpoints.Health.DEAD:
            raise
        mountpoints.detach(path)


def _wait_until_gone(mount: mountpoints.Mount, deadline: float) -> None:
    while mount in mountpoints.mounts():
        if time.monotonic() > deadline:
            raise MountBusy(f"{mount.mountpoint} is still in the mount table")
        time.sleep(_PAUSE_SECONDS)


def _wait_for_end(mount: mountpoints.Mount, process: tuple[int, int], deadline: float) -> None:
    """Wait until the daemon *process* has ended. Raises MountBusy if something keeps it alive."""
    pid, descriptor = process
    patience = min(deadline, time.monotonic() + _HELD_SECONDS)
    while not has_ended(descriptor, min(_LOOK_SECONDS, deadline - time.monotonic())):
        if time.monotonic() > patience:
            _raise_if_held(mount, pid)
        if time.monotonic() > deadline:
            raise UncleanEnd(
                f"unmounted, but the daemon (pid {pid}) has not ended, and does not answer: it is stopped, or busy with"
                " what is left to store; see its log"
            )


def _raise_if_held(mount: mountpoints.Mount, pid: int) -> None:
    """Raise MountBusy, with the ways out, if something keeps the file system of *mount* alive, which *pid* serves."""
    _raise_if_bound(mount, pid)
    registration = registrations.registered(mount.mountpoint)
    if registration is not None:
        daemon = Detached(registration, pid, keepers(mount.device, mount.mountpoint))
        if any(keeper.certain for keeper in daemon.keepers) or _serves(registration):
            raise MountBusy(daemon.describe())


def _raise_if_bound(mount: mountpoints.Mount, pid: int) -> None:
    """Raise MountBusy if the file system of *mount* has another mountpoint in this namespace (``mount --bind``)."""
    ours = (mount.device, mount.source)  # the kernel may have given the device to a new mount by now
    others = [other.mountpoint for other in mountpoints.mounts() if (other.device, other.source) == ours]
    if others:
        remedies = " && ".join(f"vfsd umount {quoted(other)}" for other in others)
        raise MountBusy(
            f"{mount.mountpoint} is unmounted, but its daemon (pid {pid}) goes on: it is also mounted at"
            f" {', '.join(others)}; unmount that too: {remedies}"
        )


def _serves(registration: registrations.Registration) -> bool:
    """Return whether the daemon still answers. It stops that when the kernel has given its file system up."""
    try:
        ask(registrations.socket_of(registration), "info")
    except NoAnswer:
        return False
    return True
