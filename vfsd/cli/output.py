"""Print what a command has to say. Every line goes through here, so that no name can control the terminal."""

import click

from vfsd.printable import printable


def say(line: str, *, err: bool = False) -> None:
    """Print one *line*, with everything escaped that is not printable; with *err* on standard error."""
    click.echo(printable(line), err=err)
