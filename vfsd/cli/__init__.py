"""The command line. A command parses its arguments, calls the project, and prints.

Each command is in a module of its own. A module is imported only when its command is called, because ``status`` and
``umount`` should not wait for the imports of ``mount``.
"""

import gc
import importlib
import sys
from typing import Any

import click

from vfsd.cli.failures import Told
from vfsd.cli.help import Group, option
from vfsd.cli.output import say
from vfsd.cli.streams import prepare as prepare_streams
from vfsd.config import completion_request
from vfsd.errors import VfsdError, exit_status_of
from vfsd.host.command_line import hide_passwords

COMMANDS = {
    "mount": "vfsd.cli.mount",
    "umount": "vfsd.cli.umount",
    "status": "vfsd.cli.status",
    "scopes": "vfsd.cli.scopes",
    "skill": "vfsd.cli.skill",
    "seed": "vfsd.cli.skill",
    "destroy": "vfsd.cli.scopes",
    "completion": "vfsd.cli.completion",
}
"""The module of each command. A test compares this table with the commands that the modules define."""


class _LazyGroup(Group):
    """A group that imports the module of a command when the command is called or described."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name)
        return command


def _print_versions(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from vfsd.fuse.version import versions  # noqa: PLC0415 (imports pyfuse3)

        click.echo(versions())
        ctx.exit()


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    examples=[
        "vfsd mount mnt --scope run-42 --store sqlite:runs.db",
        "vfsd status",
        "vfsd umount mnt",
    ],
)
@option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_versions,
    help="Print the versions of vfsd, pyfuse3, libfuse and the kernel.",
)
def root() -> None:
    """Ordinary files for agent runs: a scope in memory, mounted through FUSE, written through to a store."""


def main() -> Any:
    """Run the command line. A VfsdError becomes one line on stderr and an exit status."""
    prepare_streams()
    gc.disable()  # a tenth of the start would be searching modules for garbage; a daemon enables it when it is hydrated
    hide_passwords(sys.argv)
    if completion_request():
        from vfsd.cli.completion import prepare  # noqa: PLC0415 (only when a shell asks)

        prepare()
    try:
        return root(prog_name="vfsd")
    except Told as error:
        sys.exit(exit_status_of(error.first))
    except VfsdError as error:
        say(f"vfsd: {error}", err=True)
        sys.exit(exit_status_of(error))
