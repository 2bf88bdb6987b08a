"""The options that say which store a command uses, and its password."""

from collections.abc import Callable
from typing import Any, TypeVar

from vfsd.cli.completers import complete_files
from vfsd.cli.help import Topic, option

Command = TypeVar("Command", bound=Callable[..., Any])


def store_options(command: Command) -> Command:
    """Give *command* the options ``--store`` and ``--store-password-file``."""
    store = option(
        "--store",
        metavar="URL",
        topic=Topic.SCOPE,
        help="Where scopes are stored: redis://, rediss://, unix://, sqlite:PATH. Default: $VFSD_STORE.",
        more="In full: `redis://[USER:PASSWORD@]HOST:PORT/DB`, `rediss://…` (TLS), `unix://PATH`,"
        " `redis+sentinel://HOST:PORT,HOST:PORT/SERVICE`, `sqlite:PATH`. If `$VFSD_STORE` is not set either, the store"
        " is `redis://127.0.0.1:6379/0`.",
    )
    password = option(
        "--store-password-file",
        metavar="FILE",
        shell_complete=complete_files,
        topic=Topic.SCOPE,
        help="Read the password of the store from FILE. Default: $VFSD_STORE_PASSWORD.",
        more="A password in `--store` works too: `ps` shows it until the command has started, then `***`.",
    )
    return store(password(command))
