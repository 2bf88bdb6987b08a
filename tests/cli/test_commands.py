"""The command line is complete: no command and no option is missing in a table or on the page of commands."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import vfsd.cli
from vfsd.cli.mount import mount

ROOT = Path(__file__).resolve().parents[2]


def _defined() -> dict[str, str]:
    """Return the module of each command that a module of ``vfsd.cli`` defines. Commands of a group are left out."""
    modules = [importlib.import_module(f"vfsd.cli.{info.name}") for info in pkgutil.iter_modules(vfsd.cli.__path__)]
    commands = {
        id(command): (command, module.__name__)
        for module in modules
        for command in vars(module).values()
        if isinstance(command, click.Command)
    }
    groups = [command for command, _ in commands.values() if isinstance(command, click.Group)]
    of_groups = {id(command) for group in groups for command in group.commands.values()}
    return {command.name or "": module for key, (command, module) in commands.items() if key not in of_groups}


def test_every_command_is_in_the_table() -> None:
    assert _defined() == vfsd.cli.COMMANDS


@pytest.mark.parametrize("name", vfsd.cli.COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    assert re.search(rf"^    vfsd {name} ", (ROOT / "docs/commands.md").read_text(), re.MULTILINE)


def test_every_option_of_mount_is_a_parameter_of_its_function() -> None:
    assert mount.callback is not None
    passed_on = [option.name for option in mount.params if option.expose_value]  # --read-only stands for -o ro
    assert passed_on == list(inspect.signature(mount.callback).parameters)


def test_every_option_of_mount_has_a_help_text() -> None:
    options = [option for option in mount.params if isinstance(option, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize(
    ("given", "meant"), [("mout", "mount"), ("unmount", "umount"), ("Status", "status"), ("frobnicate", None)]
)
def test_a_mistyped_command_gets_a_suggestion(given: str, meant: str | None) -> None:
    result = CliRunner().invoke(vfsd.cli.root, [given])
    assert result.exit_code == 2
    assert f"No such command '{given}'" in result.output
    assert (f"; did you mean '{meant}'?" in result.output) is (meant is not None)
