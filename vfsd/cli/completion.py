"""``vfsd completion``: the script that lets a shell complete command lines of vfsd.

Click finds out what may come next, and has the scripts of zsh and fish. The script of bash is our own: bash breaks a
word at ``:``, ``=`` and ``@``, so with click's script the URL of a store would arrive in pieces.
"""

import os
from typing import Any

import click
from click.shell_completion import (
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from vfsd.cli.help import Command
from vfsd.cli.output import say
from vfsd.config import typed_line

_BASH = r"""%(complete_func)s() {
    local line=${COMP_LINE:0:COMP_POINT} kind value
    # Bash replaces only what follows the last character at which it breaks words.
    local word=${line##*[[:blank:]]}
    local kept=${word%%"${word##*[$COMP_WORDBREAKS]}"}
    [[ $kept != -* ]] || kept=${kept#*=}
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                value=${value#"$kept"}
                [[ ${COMP_WORDS[COMP_CWORD]} == [\"\']* ]] || printf -v value %%q "$value"
                COMPREPLY+=("$value") ;;
        esac
    done < <(VFSD_TYPED=$line %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@add_completion_class
class _Bash(ShellComplete):
    """The completion of bash 4.4 and newer."""

    name = "bash"
    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is being typed, and what of that one is typed already."""
        *words, last = split_arg_string(f"{typed_line()}.")  # the dot ends an unfinished word, and begins a new one
        return words[1:], last.removesuffix(".")

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return *item* as the script reads it."""
        return f"{item.type},{item.value}"


class _WholeWord(ShellComplete):
    """The completion of a shell that replaces whole words: for ``--scope=r`` it needs the option with the value."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return what may come next in place of *incomplete*."""
        found = super().get_completions(args, incomplete)
        option, equals, _ = incomplete.partition("=")
        if not (equals and option.startswith("-")):
            return found
        return [CompletionItem(f"{option}={each.value}", each.type, each.help) for each in found]


@add_completion_class
class _Zsh(_WholeWord, ZshComplete):
    """The completion of zsh."""


@add_completion_class
class _Fish(_WholeWord, FishComplete):
    """The completion of fish."""


@click.command(
    cls=Command,
    examples=[
        "source <(vfsd completion bash)",
        "vfsd completion fish > ~/.config/fish/completions/vfsd.fish",
    ],
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, options and their choices, the scopes of the store, the mountpoints of vfsd, files and
    directories. A store that does not answer within a second is left out.
    """
    script = get_completion_class(shell)
    assert script is not None
    for line in script(ctx.find_root().command, {}, "vfsd", "_VFSD_COMPLETE").source().splitlines():
        say(line)


def prepare() -> None:
    """Let an answer to a shell have no error messages: they would stand in the middle of what somebody types."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)
