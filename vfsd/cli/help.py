"""How a command describes itself: options in groups, examples, and commands that are meant perhaps.

Everything that a reader is told of an option is in its decorator. ``--help`` shows the short text. docs/cli.md and the
manual page are made from the same decorators (``tools/reference``), and add the explanation. This module must stay
small and import nothing but click: every command waits for it.
"""

import functools
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any

import click


class Topic(StrEnum):
    """The groups of options, in the order in which they are shown."""

    SCOPE = "Scope and store"
    PLACE = "Where and for whom"
    LIMITS = "Limits"
    SEEDS = "Skills and seeds"
    DURABILITY = "Durability"
    LOGGING = "Logging"
    OTHER = "Other"


class Option(click.Option):
    """An option with the group it is shown in (*topic*), and what the pages say beyond its help text (*more*)."""

    def __init__(self, *arguments: Any, topic: Topic = Topic.OTHER, more: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.topic = topic
        self.more = more
        if isinstance(self.type, click.IntRange):
            self.type.name = "whole number"  # click's errors name the kind of value so

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return what is shown in brackets. A range is left out: the help text says it in words."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


option = functools.partial(click.option, cls=Option)
"""The decorator for every option of vfsd."""


class Command(click.Command):
    """A command with *examples*: command lines that work as they are written."""

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = tuple(examples)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse *args*. An unknown short option gets as a hint the long options that begin with its letter."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            names = [name for each in self.get_params(ctx) for name in each.opts]
            meant = [name for name in names if name.startswith(f"-{error.option_name}")]
            if error.option_name.startswith("--") or not meant:
                raise
            raise _with_hint(error, meant, ctx) from None

    def groups(self, ctx: click.Context) -> Iterator[tuple[str, list[click.Option]]]:
        """Yield the groups of options, each with its heading. Options of one topic only need no groups."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option) and not each.hidden]
        topics = {_topic(each) for each in options}
        if len(topics - {Topic.OTHER}) <= 1:
            yield "Options", options
            return
        for topic in Topic:
            if topic in topics:
                yield topic.value, [each for each in options if _topic(each) is topic]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in their groups, with all explanations in one column."""
        groups = [(heading, [record(each, ctx) for each in options]) for heading, options in self.groups(ctx)]
        widest = max(_width(rows) for _, rows in groups)
        for heading, rows in groups:
            with formatter.section(heading):
                formatter.write_dl(rows, _WIDEST, 2 + widest - _width(rows))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")


_WIDEST = 30
"""Most columns for the name of an option. A longer name is in a line of its own."""


def record(each: click.Option, ctx: click.Context) -> tuple[str, str]:
    """Return how *each* is written, and what its help says, with its default."""
    return each.get_help_record(ctx) or ("", "")


def _width(rows: list[tuple[str, str]]) -> int:
    return min(_WIDEST, max(len(name) for name, _ in rows))


def _topic(each: click.Option) -> Topic:
    return each.topic if isinstance(each, Option) else Topic.OTHER


class Group(Command, click.Group):
    """A group of commands. A command that does not exist gets a suggestion."""

    command_class = Command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that *args* begin with. Raises UsageError, with a command that is meant perhaps."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            meant = _meant(args[0], self.list_commands(ctx))
            if not meant:
                raise
            raise _with_hint(error, meant, ctx) from None


def _with_hint(error: click.UsageError, meant: Sequence[str], ctx: click.Context) -> click.UsageError:
    """Return *error* with what is *meant* perhaps."""
    return click.UsageError(f"{error.message.rstrip('.')}; did you mean {' or '.join(map(repr, meant))}?", ctx)


_OTHER_NAMES = {
    "ls": ("list", "scopes", "status"),
    "list": ("scopes", "status"),
    "ps": ("status",),
    "rm": ("remove", "destroy"),
    "delete": ("remove", "destroy"),
    "drop": ("destroy",),
}
"""What other programs call a command."""


def _meant(name: str, commands: Sequence[str]) -> list[str]:
    """Return those of *commands* that somebody means perhaps who writes *name*."""
    if name == "help":
        return ["--help"]
    import difflib  # noqa: PLC0415 (slow to import, and rarely needed)

    same = [command for command in _OTHER_NAMES.get(name, ()) if command in commands]
    return same or difflib.get_close_matches(name.lower(), commands, n=1)
