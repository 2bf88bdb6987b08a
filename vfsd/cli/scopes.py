"""``vfsd scopes`` and ``vfsd destroy``: the scopes in a store, mounted or not."""

import datetime as dt
import json
from typing import Any

import click

from vfsd.cli.completers import complete_scopes
from vfsd.cli.detached import detached_owners
from vfsd.cli.help import Command, option
from vfsd.cli.opened_store import with_store
from vfsd.cli.output import say
from vfsd.cli.parsing import parse_scope, parse_store
from vfsd.cli.store_option import store_options
from vfsd.errors import ScopeBusy, ScopeDamaged
from vfsd.store.base import ScopeSummary


@click.command(cls=Command, examples=["vfsd scopes --store sqlite:runs.db"])
@store_options
@option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def scopes(store: str | None, store_password_file: str | None, as_json: bool) -> None:
    """List the scopes of a store. Status 8 if one is damaged; the others are listed all the same."""
    summaries = with_store(parse_store(store, store_password_file), lambda opened: opened.scopes())
    if as_json:
        click.echo(json.dumps([_json_object(summary) for summary in summaries], indent=2))
    else:
        for summary in summaries:
            say(_line(summary))
    _raise_if_damaged(summaries)


def _line(summary: ScopeSummary) -> str:
    created = dt.datetime.fromtimestamp(summary.created_ns / 1e9, dt.UTC)
    state = f"mounted: {summary.owner.describe()}" if summary.owner else "not mounted"
    damage = f"  damaged: {summary.damage.key}: {summary.damage.why}" if summary.damage else ""
    return f"{summary.name}  {summary.files} files  made {created:%Y-%m-%d %H:%M:%S}Z  {state}{damage}"


def _json_object(summary: ScopeSummary) -> dict[str, Any]:
    owner = summary.owner
    held_by = None if owner is None else {"host": owner.host, "pid": owner.pid, "mountpoint": owner.mountpoint}
    listed = {"scope": summary.name, "files": summary.files, "created_ns": summary.created_ns, "owner": held_by}
    return {**listed, "damage": summary.damage._asdict()} if summary.damage else listed


def _raise_if_damaged(summaries: list[ScopeSummary]) -> None:
    """Raise ScopeDamaged, which names every damaged scope."""
    damaged = [summary.name for summary in summaries if summary.damage is not None]
    if damaged:
        raise ScopeDamaged(
            f"{len(damaged)} of {len(summaries)} scopes are damaged: {', '.join(damaged)};"
            " restore them from a backup, or read what is left with 'vfsd mount --salvage'"
        )


@click.command(cls=Command, examples=["vfsd destroy run-42 --store sqlite:runs.db"])
@click.argument("scope", shell_complete=complete_scopes)
@store_options
@option("--yes", is_flag=True, help="Do not ask.")
def destroy(scope: str, store: str | None, store_password_file: str | None, yes: bool) -> None:
    """Delete everything that is stored of SCOPE, for good. Refused while it is mounted."""
    name, url = parse_scope(scope), parse_store(store, store_password_file)
    if not yes:
        click.confirm(f"Delete all files of scope {name} for good?", abort=True)
    try:
        with_store(url, lambda opened: opened.drop(name))
    except ScopeBusy:
        _raise_if_detached(name, url)
        raise
    say(f"destroyed scope {name}")


def _raise_if_detached(scope: str, url: str) -> None:
    """Raise ScopeBusy, with the ways out, if *scope* cannot be unmounted any more: somebody keeps its removed mount."""
    daemon = next(detached_owners(scope, url), None)
    if daemon is not None:
        raise ScopeBusy(f"scope {scope} is still in use: {daemon.describe()}")
