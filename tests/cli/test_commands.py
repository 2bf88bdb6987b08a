"""The command line is complete, and says what it takes: commands, options, examples, suggestions."""

import importlib
import inspect
import os
import pkgutil
import re
import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

import vfsd.cli
from tests.support.cli import success
from tests.support.mounted import run_vfsd
from vfsd.cli.help import Command, Topic, record
from vfsd.cli.mount import mount


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


def test_every_option_of_mount_is_a_parameter_of_its_function() -> None:
    assert mount.callback is not None
    passed_on = [option.name for option in mount.params if option.expose_value]  # --read-only stands for -o ro
    assert passed_on == list(inspect.signature(mount.callback).parameters)


def _contexts(ctx: click.Context) -> Iterator[click.Context]:
    """Yield a context for the command of *ctx*, and for every command below it."""
    yield ctx
    if isinstance(group := ctx.command, click.Group):
        for name in group.list_commands(ctx):
            command = group.get_command(ctx, name)
            assert command is not None
            yield from _contexts(click.Context(command, parent=ctx, info_name=name))


EVERY = list(_contexts(click.Context(vfsd.cli.root, info_name="vfsd")))


@pytest.mark.parametrize("ctx", EVERY, ids=lambda ctx: ctx.command_path)
def test_every_command_has_examples_that_are_right(ctx: click.Context) -> None:
    """Click accepts their arguments and options. Nothing is run."""
    assert isinstance(ctx.command, Command)
    assert ctx.command.examples
    for example in ctx.command.examples:
        words = shlex.split(re.sub(r"source <\((.*)\)|(.*?) [<>] .*", r"\1\2", example))
        assert words[0] == "vfsd"
        command: click.Command = vfsd.cli.root
        arguments = words[1:]
        while isinstance(command, click.Group):
            _, found, arguments = command.resolve_command(ctx, arguments)
            assert found is not None
            command = found
        command.make_context("example", arguments)  # raises UsageError


@pytest.mark.parametrize("ctx", EVERY, ids=lambda ctx: ctx.command_path)
def test_every_option_is_explained_and_its_value_has_a_name(ctx: click.Context) -> None:
    for option in ctx.command.params:
        if isinstance(option, click.Option):
            name, text = record(option, ctx)
            assert text, name
            assert not re.search("TEXT|INTEGER|FLOAT|PATH$|FILENAME|RANGE", name), "give it a metavar"


def test_the_help_of_mount_has_its_options_in_groups() -> None:
    shown = success(run_vfsd("mount", "--help", env={**os.environ, "COLUMNS": "80"}))
    headings = re.findall(r"^(\w.*):$", shown, re.MULTILINE)
    assert headings == [topic.value for topic in Topic] + ["Examples"]
    limits = shown.partition("\nLimits:\n")[2].partition("\n\n")[0]
    assert re.findall(r"^  (--\S+ \S+)", limits, re.MULTILINE)[:3] == [
        "--max-bytes SIZE",
        "--max-files NUMBER",
        "--max-file-bytes SIZE",
    ]
    columns = {len(match[0]) for match in re.finditer(r"^  -.*?\S  +(?=\S)", shown, re.MULTILINE)}
    assert len(columns) == 1, "the explanations begin in one column"


def test_a_command_of_one_topic_has_one_group() -> None:
    shown = success(run_vfsd("destroy", "--help", env=dict(os.environ)))
    assert re.findall(r"^(\w.*):$", shown, re.MULTILINE) == ["Options", "Examples"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("mout", "'mount'"),
        ("unmount", "'umount'"),
        ("Status", "'status'"),
        ("ls", "'scopes' or 'status'"),
        ("skill ad", "'add'"),
        ("skill ls", "'list'"),
        ("skill rm", "'remove'"),
        ("rm", "'destroy'"),
        ("frobnicate", None),
        ("skill frobnicate", None),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(given: str, meant: str | None) -> None:
    result = CliRunner().invoke(vfsd.cli.root, given.split())
    assert result.exit_code == 2
    assert f"No such command '{given.rpartition(' ')[2]}'" in result.output
    assert result.output.partition("did you mean ")[2].strip() == (f"{meant}?" if meant else "")


def test_a_mistyped_option_gets_a_suggestion() -> None:
    result = CliRunner().invoke(vfsd.cli.root, ["mount", "mnt", "--max-byte", "1G"])
    assert result.exit_code == 2
    assert "--max-bytes" in result.output
