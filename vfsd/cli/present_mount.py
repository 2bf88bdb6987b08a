"""What stands in the way of a new mount: the same scope mounted there already, or kept by a daemon without a mount.

To mount again what is mounted already is no error, so that a script can be repeated. But it is one if the mount that is
there is not what was asked for.
"""

import os

from vfsd.cli.detached import detached_owners
from vfsd.cli.output import say
from vfsd.client.connection import NoAnswer, ask
from vfsd.config import MountConfig
from vfsd.errors import MountpointError
from vfsd.host import mountpoint as mountpoints
from vfsd.host import registrations
from vfsd.shell import quoted
from vfsd.store.url import hidden


def is_mounted(config: MountConfig) -> bool:
    """Return whether the scope of *config* is mounted there already, and answers.

    Raises MountpointError if a scope of the same name from another store is mounted there.
    """
    present = mountpoints.mount_at(config.mountpoint)
    if (
        present is None
        or present.scope != config.scope
        or mountpoints.health(config.mountpoint) is not mountpoints.Health.ALIVE
    ):
        return False
    registered = registrations.registered(config.mountpoint)
    if registered is not None and registered.store != hidden(config.store):
        raise MountpointError(f"{config.mountpoint}: scope {config.scope} of {registered.store} is mounted there")
    return True


def check_alike(config: MountConfig, *, foreground: bool) -> None:
    """Raise MountpointError if the mount that is there already is not what *config* asks for.

    It is another user's, or it is for reading only, or it is not, or nobody in the *foreground* would serve it.
    """
    present = mountpoints.own_mount_at(config.mountpoint)
    what = f"{config.mountpoint}: scope {config.scope} is already mounted there"
    if os.geteuid() not in {0, present.user}:
        raise MountpointError(f"{what} by uid {present.user}; mount elsewhere")
    if foreground:
        raise MountpointError(f"{what} by another daemon, so nothing is left to do in the foreground")
    registered = registrations.registered(config.mountpoint)
    if registered is not None and _reads_only(registered) is (not config.read_only):
        access = "writing" if config.read_only else "reading only"
        raise MountpointError(f"{what} for {access}; unmount it first: vfsd umount {quoted(config.mountpoint)}")


def _reads_only(registered: registrations.Registration) -> bool | None:
    """Return whether the mount of *registered* is for reading only; None if its daemon does not tell."""
    try:
        return bool(ask(registrations.socket_of(registered), "info")["read_only"])
    except NoAnswer:
        return None


def check_no_seeds(config: MountConfig) -> None:
    """Raise MountpointError if *config* has seeds: a mount that was there already does not show them."""
    if config.skills or config.seeds:
        raise MountpointError(
            f"{config.mountpoint}: scope {config.scope} is already mounted there, and nothing was seeded: "
            "use 'vfsd skill add' and 'vfsd seed'"
        )


def take_back(config: MountConfig) -> None:
    """End a daemon of this user that has the scope of *config*, but whose mount somebody removed while it was in use.

    Programs and mount namespaces that still use the removed mount get ENOTCONN. A read-only mount needs no claim, so it
    ends no daemon. Raises MountBusy if the daemon does not end.
    """
    if config.read_only:
        return
    for daemon in detached_owners(config.scope, config.store):
        daemon.end()
        held = f"its daemon (pid {daemon.pid}) was unmounted, but held by {daemon.held_by}"
        say(f"took scope {config.scope} back: {held}", err=True)
