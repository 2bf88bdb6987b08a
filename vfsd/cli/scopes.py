"""``vfsd scopes`` and ``vfsd destroy``: what a store holds, mounted or not."""

import datetime as dt
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click
import trio

from vfsd.cli.given import chosen_store
from vfsd.config import checked_scope
from vfsd.store.base import ScopeSummary, Store, StoreOptions
from vfsd.store.url import open_store

T = TypeVar("T")

_STORE_HELP = "The store. Default: $VFSD_STORE, else a Redis on this host."


@click.command()
@click.option("--store", help=_STORE_HELP)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def scopes(store: str | None, as_json: bool) -> None:
    """List the scopes of a store."""
    found = _with_store(store, lambda opened: opened.scopes())
    if as_json:
        click.echo(json.dumps([_plain(summary) for summary in found], indent=2))
        return
    for summary in found:
        made = dt.datetime.fromtimestamp(summary.created_ns / 1e9, dt.UTC)
        state = f"mounted: {summary.owner.describe()}" if summary.owner else "not mounted"
        click.echo(f"{summary.name}  {summary.files} files  made {made:%Y-%m-%d %H:%M:%S}Z  {state}")


def _plain(summary: ScopeSummary) -> dict[str, Any]:
    owner = summary.owner
    held = None if owner is None else {"host": owner.host, "pid": owner.pid, "mountpoint": owner.mountpoint}
    return {"scope": summary.name, "files": summary.files, "created_ns": summary.created_ns, "owner": held}


@click.command()
@click.argument("scope")
@click.option("--store", help=_STORE_HELP)
@click.option("--yes", is_flag=True, help="Do not ask.")
def destroy(scope: str, store: str | None, yes: bool) -> None:
    """Delete all that is stored of SCOPE, for good. Refused while it is mounted."""
    name = checked_scope(scope)
    if not yes:
        click.confirm(f"Delete all files of scope {name} for good?", abort=True)
    _with_store(store, lambda opened: opened.drop(name))
    click.echo(f"destroyed scope {name}")


def _with_store(url: str | None, use: Callable[[Store], Awaitable[T]]) -> T:
    """Return what *use* makes of the store that *url* names."""

    async def run() -> T:
        store = open_store(chosen_store(url), StoreOptions())
        try:
            return await use(store)
        finally:
            await store.aclose()

    return trio.run(run)
