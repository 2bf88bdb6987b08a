"""Printing: every command prints through here, so that nothing it quotes can control the terminal."""

import click

from vfsd.printable import printable


def echo(line: str, *, err: bool = False) -> None:
    """Print *line*, to stderr if *err* says so. Characters that are not printable are shown as escapes."""
    click.echo(printable(line), err=err)
