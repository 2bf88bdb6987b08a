"""The commands of vfsd as Markdown: usage, explanations, options and examples, read from the commands themselves."""

import inspect
import re
from collections.abc import Iterable, Iterator

import click

from vfsd.cli import root
from vfsd.cli.help import Command, Option, record

_PAGE = re.compile(r"\bdocs/([\w.-]+\.md)(#[\w-]+)?")


def commands() -> str:
    """Return a table of all commands, then a section for each."""
    contexts = list(_contexts(click.Context(root, info_name="vfsd", **root.context_settings)))
    rows = [_overview(ctx) for ctx in contexts if not isinstance(ctx.command, click.Group)]
    return "\n\n".join([_table("command", rows), *map(_section, contexts)])


def _overview(ctx: click.Context) -> tuple[str, str]:
    """Return what a command needs, and what it does."""
    needed = [record(each, ctx)[0] for each in ctx.command.params if isinstance(each, click.Option) and each.required]
    usage = " ".join([_usage(ctx).replace(" [OPTIONS]", ""), *needed])
    return f"`{usage}`", ctx.command.get_short_help_str(100)


def _table(what: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table with *rows*: what there is, and what it does."""
    cells = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join([f"| {what} | what it does |", "|---|---|", *(f"| {name} | {text} |" for name, text in cells)])


def _contexts(ctx: click.Context) -> Iterator[click.Context]:
    """Yield a context for the command of *ctx*, and for every command below it."""
    yield ctx
    group = ctx.command
    if isinstance(group, click.Group):
        for name in group.list_commands(ctx):
            command = group.get_command(ctx, name)
            assert command is not None
            yield from _contexts(click.Context(command, parent=ctx, info_name=name, **command.context_settings))


def _usage(ctx: click.Context) -> str:
    return " ".join([ctx.command_path, *ctx.command.collect_usage_pieces(ctx)])


def _section(ctx: click.Context) -> str:
    """Return the section of one command."""
    command = ctx.command
    assert isinstance(command, Command), f"{ctx.command_path}: give it cls=Command"
    parts = [f"### {ctx.command_path}", f"    {_usage(ctx)}", _prose(inspect.cleandoc(command.help or ""))]
    groups = [(heading, [_row(each, ctx) for each in options]) for heading, options in _own_groups(ctx, command)]
    for heading, rows in groups:
        parts += [f"**{heading}**"] if len(groups) > 1 else []
        parts.append(_table("option", rows))
    if command.examples:
        parts += ["For example:", "\n".join(f"    {example}" for example in command.examples)]
    return "\n\n".join(parts)


def _own_groups(ctx: click.Context, command: Command) -> Iterator[tuple[str, list[click.Option]]]:
    """Yield the groups of options without ``--help``, which every command has."""
    for heading, options in command.groups(ctx):
        own = [each for each in options if "--help" not in each.opts]
        if own:
            yield heading, own


def _row(each: click.Option, ctx: click.Context) -> tuple[str, str]:
    """Return how an option is written, and its help text, what the pages add, and what --help has in brackets."""
    name, text = record(each, ctx)
    text, _, extra = text.partition("  [")
    more = each.more if isinstance(each, Option) else ""
    sentences = [text, more, f"({extra.removesuffix(']')})" if extra else ""]
    names = ", ".join(f"`{part}`" for part in re.split(r", (?=-)", name))
    return names, _prose(" ".join(filter(None, sentences)))


def _prose(text: str) -> str:
    """Return *text* with a link for each page that it names."""
    return _PAGE.sub(lambda match: f"[{match[1]}]({match[1]}{match[2] or ''})", text)
