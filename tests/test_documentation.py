"""The pages name what there is: every option, operation and exit status, and only files that exist."""

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tools.reference.pages import outdated
from vfsd.control.handlers.files import file_operations
from vfsd.control.handlers.scope import scope_operations
from vfsd.control.handlers.seeds import seed_operations
from vfsd.errors import EXIT_STATUS, EXIT_STATUS_MEANING

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md",
    "CHANGELOG.md",
    "clients/node/README.md",
    *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md")),
]

_NOT_FOR_PEOPLE = {"VFSD_TYPED"}
"""How a script of completion speaks to vfsd."""

_PATH = re.compile(r"`((?:bench|clients|docs|examples|systemd|tests|tools|vfsd)/[\w.@/-]*)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


def _text(page: str) -> str:
    return (ROOT / page).read_text()


def _first_cells(page: str) -> str:
    """Return the first cell of every table row."""
    return "\n".join(line.split("|")[1] for line in _text(page).splitlines() if line.startswith("|"))


def _anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of *page*, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _operations(make: Any) -> set[str]:
    """Return the operations that *make* has handlers for. No handler is called, so it gets no real arguments."""
    return set(make(*[None] * len(inspect.signature(make).parameters)))


def test_the_pages_of_the_command_line_are_up_to_date() -> None:
    assert [path.name for path in outdated()] == [], "run 'make docs'"


def test_every_exit_status_has_a_meaning() -> None:
    assert EXIT_STATUS_MEANING.keys() == {0, *EXIT_STATUS.values()}


def test_every_environment_variable_has_a_row() -> None:
    read = re.findall(r"environ\.get\(\"([A-Z]\w+)\"", _text("vfsd/config.py"))
    assert "VFSD_STORE" in read
    cells = _first_cells("docs/cli.md")
    assert not [name for name in read if f"`{name}`" not in cells and name not in _NOT_FOR_PEOPLE]


@pytest.mark.parametrize("make", [file_operations, scope_operations, seed_operations])
def test_every_control_operation_has_a_row(make: Any) -> None:
    cells = _first_cells("docs/control.md")
    operations = _operations(make)
    assert operations
    assert not {name for name in operations if f"`{name}`" not in cells}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_only_files_that_exist(page: str) -> None:
    names = {name.rstrip(".") for name in _PATH.findall(_text(page))}
    assert not {name for name in names if not (ROOT / name).exists() and not (ROOT / f"{name}.py").exists()}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for name, anchor in _LINK.findall(_text(page)):
        target = (ROOT / page).parent / name if name else ROOT / page
        assert target.exists(), name
        assert not anchor or anchor in _anchors(target), f"{name}#{anchor}"


@pytest.mark.parametrize("page", ["README.md", "docs/agents.md", "clients/node/README.md"])
def test_a_page_names_the_versions_that_the_node_client_needs(page: str) -> None:
    package = json.loads(_text("clients/node/package.json"))
    text = " ".join(_text(page).split())
    assert f"Node {package['engines']['node'].removeprefix('>=')} or newer" in text
    assert f"`@mastra/core` {package['peerDependencies']['@mastra/core'].removeprefix('>=')} or newer" in text


def _named_tests() -> list[tuple[str, str]]:
    """Return module and fragment of each test that the last column of the fault table names; '' is the whole module."""
    table = _text("docs/guarantees.md").partition("| shown by |")[2].partition("\n\n")[0]
    named = []
    for row in table.splitlines()[2:]:
        module = ""
        for word in re.split(r"[:;,]\s*", row.rstrip("| ").rpartition("| ")[2].replace("\N{EN DASH}", "")):
            if word.startswith("`"):
                module = word.strip("`")
            named.append((module, "" if word.startswith("`") else word.strip("… ")))
    return named


@pytest.mark.parametrize(("module", "fragment"), _named_tests())
def test_the_fault_table_names_tests_that_exist(module: str, fragment: str) -> None:
    path = ROOT / (f"{module}.py" if "/" in module else f"tests/faults/{module}.py")
    assert re.search(rf"def test_\w*{fragment}", path.read_text())
