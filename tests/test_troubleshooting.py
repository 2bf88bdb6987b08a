"""docs/troubleshooting.md quotes what is printed: the sources, or the system, have each text of its tables."""

import ast
import errno
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
FILLED_IN = "\N{HORIZONTAL ELLIPSIS}"
LETTERS_ENOUGH = 4
"""The fixed parts of a message must have so many letters, or they would be found anywhere."""


def column(heading: str) -> list[tuple[str, str]]:
    """Return first cell and cell of the column *heading*, of each row that has one."""
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        names, _, *rows = [re.split(r" *\| *", line.strip("| ")) for line in table.splitlines()]
        if heading in names:
            found += [(row[0], row[names.index(heading)]) for row in rows]
    return found


MESSAGES = [cell.strip("`") for _, cell in column("it says") if cell.startswith("`")]


@cache
def sources() -> str:
    """Return the texts of vfsd and of the Node client, one a line. A mark stands where they fill in a value."""
    scripts = [path.read_text() for path in (ROOT / "clients" / "node").glob("*.mjs")]
    texts = [text for path in (ROOT / "vfsd").rglob("*.py") for text in _texts(path)]
    return "\n".join([*texts, *(re.sub(r"\$\{.*?\}", FILLED_IN, script) for script in scripts)])


def _texts(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else FILLED_IN for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_of_the_page_is_one_of_the_sources(message: str) -> None:
    parts = [part.strip(" :;(") for part in message.split(FILLED_IN)]
    assert len(re.findall("[a-z]", "".join(parts))) >= LETTERS_ENOUGH
    assert not [part for part in parts if part not in sources()]


@pytest.mark.parametrize(("name", "text"), column("it prints"))
def test_an_errno_of_the_page_has_its_text(name: str, text: str) -> None:
    assert text.strip("`") == os.strerror(getattr(errno, name))


def test_every_table_is_checked() -> None:
    assert len(MESSAGES) + len(column("it prints")) + 1 == len(column("what to do"))  # one text is Mastra's own
