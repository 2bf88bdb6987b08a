"""What is printed cannot control a terminal or forge a line of a log, and still says what it was."""

import ast
import logging
from pathlib import Path

import pytest

from vfsd.daemon.log_format import LogFormatter
from vfsd.printable import printable

CLI = Path(__file__).parent.parent / "vfsd" / "cli"


def test_printable_text_stays_as_it_is() -> None:
    for text in ("", "plain text", "Ünïcödé 漢字 🎉", "a\\b"):
        assert printable(text) == text
        assert printable(text.encode()) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", r"a\nb"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("\x7f\r\t\0", r"\x7f\r\t\x00"),
        ("\u2028\u202e\u200b\ufeff", r"\u2028\u202e\u200b\ufeff"),
        ("\x85\x1c", r"\x85\x1c"),
        ("\udcff\udc80", r"\xff\x80"),
        (b"\xff\x80\xc3", r"\xff\x80\xc3"),
        ("\ud800", r"\ud800"),
        ("\U000e0001", r"\U000e0001"),
    ],
)
def test_everything_else_is_escaped(text: str | bytes, shown: str) -> None:
    assert printable(text) == shown
    assert shown.isascii()


def test_every_character_is_printable_afterwards_and_can_be_encoded() -> None:
    shown = printable("".join(map(chr, range(0x110000))))
    assert shown.isprintable()
    assert shown.encode()


def _formatted(message: str, *arguments: object, error: BaseException | None = None) -> list[str]:
    info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("vfsd.test", logging.WARNING, __file__, 1, message, arguments, info)
    return LogFormatter().format(record).split("\n")


def test_a_name_cannot_begin_a_line_of_the_log() -> None:
    forged = "2026-12-01 00:00:00,000 ERROR vfsd: forged\x1b[2J"
    for lines in (_formatted("%s", f"name\n{forged}"), _formatted("failed", error=ValueError(f"name\n{forged}"))):
        assert len(lines) > 1
        assert all(line.startswith("  ") for line in lines[1:])
        assert all(line.isprintable() for line in lines)


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
