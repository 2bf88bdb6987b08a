"""``vfsd scopes`` and ``vfsd destroy``: the scopes in a store, mounted or not."""

import datetime as dt
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click
import trio

from vfsd.cli.output import say
from vfsd.cli.parsing import parse_scope, parse_store
from vfsd.cli.store_option import store_options
from vfsd.store.base import ScopeSummary, Store, StoreOptions
from vfsd.store.url import open_store

T = TypeVar("T")


@click.command()
@store_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def scopes(store: str | None, store_password_file: str | None, as_json: bool) -> None:
    """List the scopes of a store."""
    summaries = _with_store(parse_store(store, store_password_file), lambda opened: opened.scopes())
    if as_json:
        click.echo(json.dumps([_json_object(summary) for summary in summaries], indent=2))
        return
    for summary in summaries:
        created = dt.datetime.fromtimestamp(summary.created_ns / 1e9, dt.UTC)
        state = f"mounted: {summary.owner.describe()}" if summary.owner else "not mounted"
        say(f"{summary.name}  {summary.files} files  made {created:%Y-%m-%d %H:%M:%S}Z  {state}")


def _json_object(summary: ScopeSummary) -> dict[str, Any]:
    owner = summary.owner
    held_by = None if owner is None else {"host": owner.host, "pid": owner.pid, "mountpoint": owner.mountpoint}
    return {"scope": summary.name, "files": summary.files, "created_ns": summary.created_ns, "owner": held_by}


@click.command()
@click.argument("scope")
@store_options
@click.option("--yes", is_flag=True, help="Do not ask.")
def destroy(scope: str, store: str | None, store_password_file: str | None, yes: bool) -> None:
    """Delete everything that is stored of SCOPE, for good. Refused while it is mounted."""
    name, url = parse_scope(scope), parse_store(store, store_password_file)
    if not yes:
        click.confirm(f"Delete all files of scope {name} for good?", abort=True)
    _with_store(url, lambda opened: opened.drop(name))
    say(f"destroyed scope {name}")


def _with_store(url: str, use: Callable[[Store], Awaitable[T]]) -> T:
    """Open the store *url*, and return the result of *use*."""

    async def run() -> T:
        store = open_store(url, StoreOptions())
        try:
            return await use(store)
        finally:
            await store.aclose()

    return trio.run(run)
