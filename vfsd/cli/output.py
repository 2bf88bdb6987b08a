<<<<<<< HEAD
"""Printing: every command prints through here, so that nothing it quotes can control the terminal."""
=======
"""Print what a command has to say. Every line goes through here, so that no name can control the terminal."""
>>>>>>> origin/main

import click

from vfsd.printable import printable


<<<<<<< HEAD
def echo(line: str, *, err: bool = False) -> None:
    """Print *line*, to stderr if *err* says so. Characters that are not printable are shown as escapes."""
=======
def say(line: str, *, err: bool = False) -> None:
    """Print one *line*, with everything escaped that is not printable; with *err* on standard error."""
>>>>>>> origin/main
    click.echo(printable(line), err=err)
