"""``vfsd status``: the mounts of this host, and their state."""

import json
from collections.abc import Callable
from typing import Any

import click

from vfsd import clock
from vfsd.cli.help import Command, option
from vfsd.cli.output import say
from vfsd.client.connection import NoAnswer, ask
from vfsd.host import mountpoint as mountpoints
from vfsd.host import registrations
from vfsd.host.daemons import Detached, detached
from vfsd.printable import printable
from vfsd.shell import quoted

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_UNIT_STEP = 1024


@click.command(cls=Command, examples=["vfsd status", "vfsd status --json"])
@option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def status(as_json: bool) -> None:
    """List the mounts of this host, and daemons that go on after their mount was removed."""
    entries = [_entry(mount) for mount in mountpoints.mounts() if mount.scope is not None]
    entries += [_entry_of_detached(daemon) for daemon in detached()]
    if as_json:
        click.echo(json.dumps(entries, indent=2))
    elif not entries:
        say("no vfsd mounts on this host")
    else:
        _print_table([list(_COLUMNS), *([printable(cell(entry)) for cell in _COLUMNS.values()] for entry in entries)])


def _entry(mount: mountpoints.Mount) -> dict[str, Any]:
    """Return what is known of one mount.

    That is its line in the mount table, its registration, and the daemon's answer to ``info``, as far as they exist.
    ``state`` is ``mounted``, ``dead``, ``silent`` (no answer in time) or ``unregistered``.
    """
    entry: dict[str, Any] = {"scope": mount.scope, "mountpoint": mount.mountpoint, "state": "mounted"}
    registered = registrations.registered(mount.mountpoint)
    if registered is None:
        return {**entry, "state": _state(mount, "unregistered")}
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
    return lambda entry: str(entry.get(name, "-"))


def _since(entry: dict[str, Any]) -> str:
    return _age(entry["since_ns"]) if "since_ns" in entry else "-"


def _bytes(entry: dict[str, Any]) -> str:
    return _size(entry["bytes"]) if "bytes" in entry else "-"


def _seeded(entry: dict[str, Any]) -> str:
    if "seeded" not in entry:
        return "-"
    return f"{entry['seeded']} ({entry['shadowed']} over stored)" if entry["shadowed"] else str(entry["seeded"])


def _last_error(entry: dict[str, Any]) -> str:
    state: str = entry["state"]
    if state == "detached":
        return f"detached, held by {entry['held_by']}; vfsd mount takes the scope back"
    if state != "mounted":
        hint = f": vfsd umount --lazy {quoted(entry['mountpoint'])}" if state == "dead" else ""
        return state + hint
    error = entry.get("last_error")
    return f"{_age(error['when_ns'])} ago: {error['what']}" if error else "-"


_COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "SCOPE": _field("scope"),
    "MOUNTPOINT": _field("mountpoint"),
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


def _age(since_ns: int) -> str:
    seconds: int = max(0, clock.now() - since_ns) // 1_000_000_000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _size(count: float) -> str:
    for unit in _UNITS:
        if count < _UNIT_STEP or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _UNIT_STEP
    raise AssertionError("unreachable")


def _print_table(rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
