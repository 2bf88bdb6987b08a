"""``vfsd scopes`` and ``vfsd destroy``: the scopes in a store, mounted or not."""

import json
from collections.abc import Callable
from typing import Any

import click

from vfsd.cli.completers import complete_scopes
from vfsd.cli.destruction import Destruction, ask
from vfsd.cli.help import Command, option
from vfsd.cli.opened_store import with_store
from vfsd.cli.output import say
from vfsd.cli.parsing import parse_scope, parse_store
from vfsd.cli.store_option import store_options
from vfsd.cli.table import NOTHING, moment, print_table, size
from vfsd.counted import counted
from vfsd.errors import ScopeDamaged
from vfsd.store.base import ScopeSummary, Store


@click.command(cls=Command, examples=["vfsd scopes --store sqlite:runs.db"])
@store_options
@option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def scopes(store: str | None, store_password_file: str | None, as_json: bool) -> None:
    """List the scopes of a store. Status 8 if one is damaged; the others are listed all the same.

    FILES does not count the root directory. BYTES are the sizes of the regular files, holes included. CHANGED is the
    last change of a file, in UTC. MOUNTED is the mountpoint, after the name of the host if that is another one.
    """
    label, summaries = with_store(parse_store(store, store_password_file), _listed)
    if as_json:
        click.echo(json.dumps([_json_object(summary) for summary in summaries], indent=2))
    elif not summaries:
        say(f"no scopes in {label}")
    else:
        print_table(list(_COLUMNS), [[cell(summary) for cell in _COLUMNS.values()] for summary in summaries])
    _raise_if_damaged(summaries)


async def _listed(store: Store) -> tuple[str, list[ScopeSummary]]:
    return store.label, await store.scopes()


def _damage(summary: ScopeSummary) -> str:
    return f"{summary.damage.key}: {summary.damage.why}" if summary.damage else NOTHING


_COLUMNS: dict[str, Callable[[ScopeSummary], str]] = {
    "SCOPE": lambda summary: summary.name,
    "FILES": lambda summary: str(summary.files),
    "BYTES": lambda summary: NOTHING if summary.bytes is None else size(summary.bytes),
    "CREATED": lambda summary: moment(summary.created_ns) if summary.created_ns else NOTHING,
    "CHANGED": lambda summary: NOTHING if summary.changed_ns is None else moment(summary.changed_ns),
    "MOUNTED": lambda summary: summary.owner.place if summary.owner else NOTHING,
    "DAMAGE": _damage,
}
"""The columns of the table: title, and the function that makes the cell of a scope."""


def _json_object(summary: ScopeSummary) -> dict[str, Any]:
    owner = summary.owner
    held_by = None if owner is None else {"host": owner.host, "pid": owner.pid, "mountpoint": owner.mountpoint}
    listed = {
        "scope": summary.name,
        "files": summary.files,
        "bytes": summary.bytes,
        "created_ns": summary.created_ns,
        "changed_ns": summary.changed_ns,
        "owner": held_by,
    }
    return {**listed, "damage": summary.damage._asdict()} if summary.damage else listed


def _raise_if_damaged(summaries: list[ScopeSummary]) -> None:
    """Raise ScopeDamaged, which names every damaged scope."""
    damaged = [summary.name for summary in summaries if summary.damage is not None]
    if damaged:
        verb = "is" if len(damaged) == 1 else "are"
        raise ScopeDamaged(
            f"{len(damaged)} of {counted(len(summaries), 'scope')} {verb} damaged: {', '.join(damaged)};"
            " restore from a backup, or read what is left with 'vfsd mount --salvage'"
        )


@click.command(cls=Command, examples=["vfsd destroy run-42 --store sqlite:runs.db", "vfsd destroy run-42 run-43 --yes"])
@click.argument("names", metavar="SCOPE...", nargs=-1, required=True, shell_complete=complete_scopes)
@store_options
@option("--yes", is_flag=True, help="Do not ask.")
def destroy(names: tuple[str, ...], store: str | None, store_password_file: str | None, yes: bool) -> None:
    """Delete everything that is stored of each SCOPE, for good. Refused while one of them is mounted for writing.

    A read-only mount does not prevent it, and still shows what it had. All scopes are looked at first, and one question
    shows what will go; any answer but yes is status 14. If one scope cannot be destroyed then, the others are all the
    same, and the first failure decides the status. The log at its default place goes too, unless a process has it open;
    a log that --log-file named stays.
    """
    scopes = list(dict.fromkeys(map(parse_scope, names)))
    url = parse_store(store, store_password_file)
    found = with_store(url, lambda opened: Destruction(opened, url, scopes).look())
    if not yes:
        ask(found)
    with_store(url, lambda opened: Destruction(opened, url, scopes).run())
