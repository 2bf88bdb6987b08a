"""The options that say which store a command uses, and its password."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def store_options(command: Command) -> Command:
    """Give *command* the options ``--store`` and ``--store-password-file``."""
    store = click.option(
        "--store", help="Where scopes are stored: redis://, rediss://, unix://, sqlite:PATH. Default: $VFSD_STORE."
    )
    password = click.option(
        "--store-password-file",
        metavar="FILE",
        help="Read the password of the store from FILE. Default: $VFSD_STORE_PASSWORD.",
    )
    return store(password(command))
