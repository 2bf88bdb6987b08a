"""``vfsd status``: the mounts of this host, and how they are."""

import json
from typing import Any

import click

from vfsd import clock
from vfsd.client.connection import NoAnswer, ask
from vfsd.host import mountpoint as mountpoints
from vfsd.host import registrations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024
_COLUMNS = ("SCOPE", "MOUNTPOINT", "STORE", "PID", "SINCE", "FILES", "BYTES", "SEEDED", "PENDING", "LAST ERROR")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def status(as_json: bool) -> None:
    """List the mounts of this host."""
    found = [_described(mount) for mount in mountpoints.mounts() if mount.scope is not None]
    if as_json:
        click.echo(json.dumps(found, indent=2))
    elif not found:
        click.echo("no vfsd mounts on this host")
    else:
        _print_table([_COLUMNS, *(_row(entry) for entry in found)])


def _described(mount: mountpoints.Mount) -> dict[str, Any]:
    """Return all that is known of one mount: the kernel's word, the registration, and the daemon's own answer."""
    entry: dict[str, Any] = {"scope": mount.scope, "mountpoint": mount.mountpoint, "state": "unknown"}
    registered = registrations.registered(mount.mountpoint)
    if registered is None:
        return {
            **entry,
            "state": "dead" if mountpoints.health(mount.mountpoint) is mountpoints.Health.DEAD else "unregistered",
        }
    entry |= {"store": registered.store, "pid": registered.pid, "since_ns": registered.since_ns}
    try:
        return {**entry, "state": "mounted", **ask(registrations.socket_path(mount.mountpoint), "info")}
    except NoAnswer:
        state = "dead" if mountpoints.health(mount.mountpoint) is mountpoints.Health.DEAD else "silent"
        return {**entry, "state": state}


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    return (
        *(str(entry.get(key, "-")) for key in ("scope", "mountpoint", "store", "pid")),
        _age(entry["since_ns"]) if "since_ns" in entry else "-",
        str(entry.get("files", "-")),
        _size(entry["bytes"]) if "bytes" in entry else "-",
        _seeded(entry) if "seeded" in entry else "-",
        str(entry.get("pending", "-")),
        _trouble(entry),
    )


def _seeded(entry: dict[str, Any]) -> str:
    return f"{entry['seeded']} ({entry['shadowed']} over stored)" if entry["shadowed"] else str(entry["seeded"])


def _trouble(entry: dict[str, Any]) -> str:
    state: str = entry["state"]
    if state != "mounted":
        hint = f": vfsd umount --lazy {entry['mountpoint']}" if state == "dead" else ""
        return state + hint
    error = entry.get("last_error")
    return f"{_age(error['when_ns'])} ago: {error['what']}" if error else "-"


def _age(since_ns: int) -> str:
    seconds: int = max(0, clock.now() - since_ns) // 1_000_000_000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _size(count: float) -> str:
    for unit in _UNITS:
        if count < _STEP or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _STEP
    raise AssertionError("unreachable")


def _print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
