"""Destroying scopes: look at all of them, ask once, then destroy one after the other.

Nothing is asked before every scope was found and is free, and nothing is destroyed before the answer. What may change
meanwhile, the store checks again.
"""

import sys

import click
import trio

from vfsd.cli.detached import detached_owners
from vfsd.cli.failures import Failures
from vfsd.cli.output import say
from vfsd.cli.table import NOTHING, moment, print_table, size
from vfsd.counted import counted
from vfsd.daemon.scope_log import remove_default_log
from vfsd.errors import Declined, ScopeBusy, ScopeDamaged, ScopeMissing, StoreError
from vfsd.store.base import ScopeSummary, Store

_OF_ONE_SCOPE = (ScopeMissing, ScopeBusy, ScopeDamaged)
"""Failures that say nothing about the next scope. Any other one is the store's: then nothing more is tried."""


class Destruction:
    """Destroys *scopes* of *store*, whose URL is *url*."""

    def __init__(self, store: Store, url: str, scopes: list[str]) -> None:
        self._store = store
        self._url = url
        self._scopes = scopes

    async def look(self) -> list[ScopeSummary]:
        """Return what will go. Raises Told if one of the scopes cannot be destroyed, StoreError."""
        failures, found = Failures(), []
        for scope in self._scopes:
            try:
                found.append(await self._store.droppable(scope))
            except _OF_ONE_SCOPE as error:
                failures.tell(self._explained(scope, error))
        failures.raise_if_any()
        return found

    async def run(self) -> None:
        """Destroy the scopes, with their default logs. One that fails does not keep the others.

        Raises Told if one failed; StoreError, which names what is left, if the store did.
        """
        failures = Failures()
        for done, scope in enumerate(self._scopes):
            try:
                await self._store.drop(scope)
            except _OF_ONE_SCOPE as error:
                failures.tell(self._explained(scope, error))
            except StoreError as error:
                left = self._scopes[done + 1 :]
                raise type(error)(f"{error}; not tried: {', '.join(left)}" if left else str(error)) from error
            else:
                say(f"destroyed scope {scope}{await trio.to_thread.run_sync(_and_its_log, scope)}")
        failures.raise_if_any()

    def _explained(self, scope: str, error: StoreError) -> StoreError:
        """Return *error*, with the ways out if *scope* cannot be unmounted because somebody keeps its removed mount."""
        if isinstance(error, ScopeBusy):
            daemon = next(detached_owners(scope, self._url), None)
            if daemon is not None:
                return ScopeBusy(f"scope {scope} is still in use: {daemon.describe()}")
        return error


def _and_its_log(scope: str) -> str:
    """Remove the default log of *scope*, and return the end of the line that says so."""
    try:
        log = remove_default_log(scope)
    except OSError as error:
        return f"; its log {error.filename} stays: {error.strerror}"
    return f" and its log {log}" if log else ""


def ask(found: list[ScopeSummary]) -> None:
    """Show what will go, and ask whether it may. Raises Declined if the answer is not yes."""
    titles = ["SCOPE", "FILES", "BYTES", "CHANGED"]
    print_table(titles, [_row(summary) for summary in found], err=True)
    what = f"scope {found[0].name}" if len(found) == 1 else f"these {counted(len(found), 'scope')}"
    try:
        agreed = sys.stdin is not None and click.confirm(f"Delete all files of {what} for good?", err=True)
    except click.Abort:  # Ctrl-C, or the end of the input
        say("", err=True)
        agreed = False
    if not agreed:
        raise Declined("nothing was destroyed: the answer was not yes (--yes does not ask)")


def _row(summary: ScopeSummary) -> list[str]:
    return [
        summary.name,
        str(summary.files),
        NOTHING if summary.bytes is None else size(summary.bytes),
        NOTHING if summary.changed_ns is None else moment(summary.changed_ns),
    ]
