"""What ``vfsd mount`` prints while its daemon starts. It never prints that something was created that may be undone."""

import sys
import time
from types import TracebackType
from typing import Any, Self

import click

from vfsd.cli.output import say

_BAR_AFTER_SECONDS = 0.5


def tell_created(created: list[str]) -> None:
    """Print a line for each directory that was *created*."""
    for directory in created:
        say(f"created {directory}", err=True)


class Progress:
    """Prints the messages of a starting daemon, and what was *created* for it as soon as nothing will be undone.

    Hydration gets a progress bar on a terminal if it takes over 0.5 s.
    """

    def __init__(self, created: list[str]) -> None:
        self._created = created
        self._started = time.monotonic()
        self._bar: Any = None
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_bar()

    def show(self, message: dict[str, Any]) -> None:
        """Print one message (see :class:`vfsd.daemon.notify.PipeReporter`)."""
        if "done" in message:
            self._show_bar(message["done"], message["total"])
            return
        self._end_bar()
        if "warning" not in message:
            tell_created(self._created)
            self._created = []
        text = next(message[kind] for kind in ("note", "warning", "ready") if kind in message)
        say(text if "ready" in message else f"vfsd: {text}", err="ready" not in message)

    def _show_bar(self, done: int, total: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._started < _BAR_AFTER_SECONDS or not sys.stderr.isatty():
                return
            self._bar = click.progressbar(length=total, label="hydrating", file=sys.stderr)
            self._bar.__enter__()
        self._bar.length = total
        self._bar.update(done - self._done)
        self._done = done

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None
