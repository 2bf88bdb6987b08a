"""What may come next while somebody types a value: the completers of options and arguments.

An answer must come soon, or not at all, and must change nothing. What only a completer needs is imported when a shell
asks, so that no command waits for it.
"""

import os
import threading
from typing import Any

import click

from vfsd.host import mountpoint as mountpoints

_PATIENCE_SECONDS = 1.0
"""How long a person who types waits for the scopes of a store."""


def complete_scopes(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the scopes of the store that the command line names so far. Raises VfsdError."""
    from vfsd.cli.opened_store import with_store  # noqa: PLC0415
    from vfsd.cli.parsing import parse_store  # noqa: PLC0415

    _end_after(_PATIENCE_SECONDS)
    url = parse_store(ctx.params.get("store"), ctx.params.get("store_password_file"))
    names = [summary.name for summary in with_store(url, lambda store: store.scopes())]
    return _shown(names, incomplete)


def _end_after(seconds: float) -> None:
    """End this process after *seconds*, if it has not answered yet: a thread may hang in a name lookup or a disk."""
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()


def complete_mountpoints(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the mountpoints of vfsd as absolute paths; for a relative beginning also those below this directory."""
    paths = [mount.mountpoint for mount in mountpoints.mounts() if mount.scope is not None]
    if incomplete:
        below = f"{os.getcwd()}/"  # noqa: PTH109 (the table has text too)
        paths += [path.removeprefix(below) for path in paths if path.startswith(below)]
    return _shown(paths, incomplete)


def _shown(values: list[str], incomplete: str) -> list[str]:
    """Return which of *values* begin with *incomplete*. A shell would misread what is not printable."""
    return [value for value in dict.fromkeys(values) if value.startswith(incomplete) and value.isprintable()]


def complete_directories(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Let the shell complete the path of a directory."""
    return _paths("dir", incomplete)


def complete_files(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
    """Let the shell complete the path of a file."""
    return _paths("file", incomplete)


def _paths(kind: str, incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem  # noqa: PLC0415

    return [CompletionItem(incomplete, type=kind)]
