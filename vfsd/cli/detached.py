"""Daemons that keep a scope although their mount was removed: what ``mount`` takes back, and ``destroy`` names."""

from collections.abc import Iterator

from vfsd.client.connection import NoAnswer, ask
from vfsd.host import mountpoint as mountpoints
from vfsd.host import registrations
from vfsd.host.daemons import Detached, detached
from vfsd.store.url import hidden, with_absolute_path


def detached_owners(scope: str, store: str) -> Iterator[Detached]:
    """Yield the detached daemons of this user that have a claim of *scope* in *store*."""
    label = hidden(with_absolute_path(store, mountpoints.absolute))
    for daemon in detached():
        registration = daemon.registration
        if (registration.scope, registration.store) == (scope, label) and _writes(registration):
            yield daemon


def _writes(registration: registrations.Registration) -> bool:
    """Return whether the daemon of *registration* has a claim, as far as it tells."""
    try:
        return not ask(registrations.socket_of(registration), "info")["read_only"]
    except NoAnswer:
        return True
