"""What is printed cannot control a terminal, and still says what it was."""

import ast
from pathlib import Path

import pytest

from vfsd.printable import printable

CLI = Path(__file__).parent.parent / "vfsd" / "cli"


def test_printable_text_stays_as_it_is() -> None:
    for text in ("", "plain text", "Ünïcödé 漢字 🎉", "a\\b"):
        assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", r"a\x0ab"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J", r"\xc2\x9b2J"),
        ("\x7f\r\t\0", r"\x7f\x0d\x09\x00"),
        ("\u202e", r"\xe2\x80\xae"),
        ("\x85\x1c", r"\xc2\x85\x1c"),
        ("\udcff\udc80", r"\xff\x80"),
        ("\ud800", r"\xed\xa0\x80"),
    ],
)
def test_everything_else_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert shown.isascii()


def test_every_character_is_printable_afterwards_and_can_be_encoded() -> None:
    shown = printable("".join(map(chr, range(0x110000))))
    assert shown.isprintable()
    assert shown.encode()


def test_commands_print_through_the_one_function() -> None:
    """click.echo is left for JSON, which has its own escapes, and for text that quotes nothing."""
    for path in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                path.name != "output.py"
                and isinstance(node, ast.Call)
                and ast.unparse(node.func) in {"click.echo", "print"}
            ):
                printed = ast.unparse(node.args[0])
                quotes_nothing = isinstance(node.args[0], ast.Constant) or printed.startswith(
                    ("json.dumps(", "versions(")
                )
                counts = printed.startswith(("f'{len(", "f'removed {"))
                assert quotes_nothing or counts, f"{path.name}: {printed}"
