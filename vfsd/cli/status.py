"""``vfsd status``: the mounts of this host, and their state. It never makes a system call on a mount that may hang."""

import json
import os
from collections.abc import Callable
from typing import Any

import click

from vfsd.cli.completers import complete_mountpoints
from vfsd.cli.failures import Failures
from vfsd.cli.help import Command, option
from vfsd.cli.output import say
from vfsd.cli.table import NOTHING, age, print_table, size
from vfsd.client.connection import NoAnswer, ask
from vfsd.errors import MountpointError, NotMounted
from vfsd.host import mountpoint as mountpoints
from vfsd.host import registrations
from vfsd.host.daemons import Detached, detached, detached_at
from vfsd.shell import quoted


@click.command(cls=Command, examples=["vfsd status", "vfsd status /mnt/run-42", "vfsd status --json"])
@click.argument("mounts", metavar="[MOUNTPOINT]...", nargs=-1, shell_complete=complete_mountpoints)
@option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def status(mounts: tuple[str, ...], as_json: bool) -> None:
    """List the mounts of this host, and daemons that go on after their mount was removed.

    With MOUNTPOINT only these are listed; status 12 if there is no vfsd mount at one of them. STATE is mounted, silent
    (no answer in time), dead (its daemon has ended), detached (unmounted, but in use), other user's, or unregistered (a
    mount of this user with another VFSD_RUNTIME_DIR). FILES does not count the root directory.
    """
    failures = Failures()
    paths = _wanted(mounts, failures) if mounts else None
    entries = _entries(paths)
    if as_json:
        click.echo(json.dumps(entries, indent=2))
    elif entries:
        print_table(list(_COLUMNS), [[cell(entry) for cell in _COLUMNS.values()] for entry in entries])
    elif paths is None:
        say("no vfsd mounts on this host")
    failures.raise_if_any()


def _wanted(mounts: tuple[str, ...], failures: Failures) -> list[str]:
    """Return *mounts* as absolute paths. What is not a mount, and not a detached one either, goes to *failures*."""
    found = []
    for mount in mounts:
        try:
            path = mountpoints.beside_mounts(mount)
            if detached_at(path) is None:
                mountpoints.own_mount_at(path)
            found.append(path)
        except (NotMounted, MountpointError) as error:
            failures.tell(error)
    return found


def _entries(paths: list[str] | None) -> list[dict[str, Any]]:
    """Return what is known of the mounts at *paths*, or of all mounts."""
    mounts = [mount for mount in mountpoints.mounts() if mount.scope is not None]
    entries = [_entry(mount) for mount in mounts if paths is None or mount.mountpoint in paths]
    daemons = [daemon for daemon in detached() if paths is None or daemon.registration.mountpoint in paths]
    return [*entries, *map(_entry_of_detached, daemons)]


def _entry(mount: mountpoints.Mount) -> dict[str, Any]:
    """Return what is known of one mount.

    That is its line in the mount table, its registration, and the daemon's answer to ``info``, as far as they exist.
    ``state`` is ``mounted``, ``dead``, ``silent`` (no answer in time), ``unregistered``, or ``other_user``.
    """
    entry: dict[str, Any] = {"scope": mount.scope, "mountpoint": mount.mountpoint, "state": "mounted"}
    registered = registrations.registered(mount.mountpoint)
    if registered is None:
        otherwise = "unregistered" if mount.user in {None, os.geteuid()} else "other_user"
        return {**entry, "uid": mount.user, "state": _state(mount, otherwise)}
    try:
        return {**entry, **_facts(registered), **ask(registrations.socket_of(registered), "info")}
    except NoAnswer:
        return {**entry, **_facts(registered), "state": _state(mount, "silent")}


def _entry_of_detached(daemon: Detached) -> dict[str, Any]:
    """Return what is known of a daemon whose mount has left the mount table, but is still in use.

    ``state`` is ``detached``. ``held_by`` says who uses it.
    """
    registered = daemon.registration
    entry = {"scope": registered.scope, "mountpoint": registered.mountpoint, "state": "detached"}
    entry |= {**_facts(registered), "held_by": daemon.held_by}
    try:
        return {**entry, **ask(registrations.socket_of(registered), "info")}
    except NoAnswer:
        return entry


def _facts(registered: registrations.Registration) -> dict[str, Any]:
    return {"store": registered.store, "pid": registered.pid, "since_ns": registered.since_ns}


def _state(mount: mountpoints.Mount, otherwise: str) -> str:
    """Return ``dead`` if the mount's daemon is gone, else *otherwise*."""
    return "dead" if mountpoints.health(mount.mountpoint) is mountpoints.Health.DEAD else otherwise


def _field(name: str) -> Callable[[dict[str, Any]], str]:
    """Return a function from an entry to its field *name* as text; ``-`` if the entry has none."""
    return lambda entry: str(entry.get(name, NOTHING))


def _state_cell(entry: dict[str, Any]) -> str:
    return "other user's" if entry["state"] == "other_user" else str(entry["state"])


def _since(entry: dict[str, Any]) -> str:
    return age(entry["since_ns"]) if "since_ns" in entry else NOTHING


def _bytes(entry: dict[str, Any]) -> str:
    return size(entry["bytes"]) if "bytes" in entry else NOTHING


def _seeded(entry: dict[str, Any]) -> str:
    if "seeded" not in entry:
        return NOTHING
    return f"{entry['seeded']} ({entry['shadowed']} over stored)" if entry["shadowed"] else str(entry["seeded"])


def _last_error(entry: dict[str, Any]) -> str:
    state: str = entry["state"]
    if state == "detached":
        return f"detached, held by {entry['held_by']}; vfsd mount takes the scope back"
    if state == "dead":
        return f"dead: vfsd umount --lazy {quoted(entry['mountpoint'])}"
    error = entry.get("last_error")
    return f"{age(error['when_ns'])} ago: {error['what']}" if error else NOTHING


_COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "SCOPE": _field("scope"),
    "MOUNTPOINT": _field("mountpoint"),
    "STATE": _state_cell,
    "STORE": _field("store"),
    "PID": _field("pid"),
    "SINCE": _since,
    "FILES": _field("files"),
    "BYTES": _bytes,
    "SEEDED": _seeded,
    "PENDING": _field("pending"),
    "LAST ERROR": _last_error,
}
"""The columns of the table: title, and the function that makes the cell of an entry."""
