"""docs/cli.md and the manual page are made from the commands (``make docs``)."""

import re
import subprocess

import pytest

from tools.reference.manual import manual
from tools.reference.pages import MANUAL, PAGE, refreshed


def _formatted(roff: str) -> str:
    """Return *roff* as a terminal shows it. A warning of groff fails the test."""
    command = ["groff", "-man", "-ww", "-Tutf8", "-P-cbou", "-rLL=90n"]
    result = subprocess.run(command, input=roff, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    return result.stdout


def test_the_manual_page_is_valid_and_has_every_section() -> None:
    shown = _formatted(MANUAL.read_text())
    headings = re.findall(r"^## (.*)", PAGE.read_text(), re.MULTILINE)
    assert headings
    assert not [heading for heading in headings if f"\n{heading.upper()}\n" not in shown]
    assert not [command for command in ("mount", "skill add") if f"\n   vfsd {command}\n" not in shown]
    assert "\n       --store-timeout SECONDS\n" in shown


def test_man_shows_it() -> None:
    result = subprocess.run(["man", "--warnings", "-l", MANUAL], capture_output=True, text=True, check=True)
    assert result.stderr == ""
    assert "vfsd - ordinary files" in result.stdout


@pytest.mark.parametrize(
    "line",
    [".TH is text", "'quoted'", r"a \xNN and \fB", "--option and a-b", "`.code`", "“quotes”"],
)
def test_text_is_no_request_of_roff(line: str) -> None:
    assert line.replace("`", "") in _formatted(manual(f"# Title\n\nFirst. \n\n{line}\n"))


def test_what_is_made_of_markdown() -> None:
    page = (
        "# Title\n\nSee [skills.md](skills.md#times) and [below](#below).\n\n## Below\n\n- one\n- two\n\n    code  *\n"
    )
    page += "\n<!-- not shown -->\n\n| what | why |\n|---|---|\n| `a\\|b` | **bold** |\n"
    shown = _formatted(manual(page))
    assert "DESCRIPTION\n       See docs/skills.md#times and below.\n\nBELOW\n" in shown
    assert re.search(r"• +one\n\n +• +two\n\n +code  \*\n\n +a\|b    bold\n", shown)
    assert "not shown" not in shown


def test_prose_stays_and_generated_parts_are_written_again() -> None:
    page = PAGE.read_text()
    damaged = page.replace("| 11 | the mount is busy |\n", "").replace("## Busy mounts", "## Busy mounts, my words")
    assert refreshed(damaged) == page.replace("## Busy mounts", "## Busy mounts, my words")
