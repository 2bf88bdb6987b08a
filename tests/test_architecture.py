"""Who may import whom, read from the source: ``cli → daemon → {fuse, control → files} → volume → {tree, store}``.

Functions that import late are read too. A module that is new on the top level must find its place in the table.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LONGEST = 300

_RULES = {"vfsd.errors", "vfsd.clock", "vfsd.tree"}
_BASE = {"vfsd.errors", "vfsd.clock", "vfsd.config"}
_BESIDE = {"vfsd.herald", "vfsd.mountpoint", "vfsd.registry", "vfsd.tasks"}
_VOLUME = {
    "vfsd.volume",
    "vfsd.changes",
    "vfsd.hydrate",
    "vfsd.memory",
    "vfsd.quota",
    "vfsd.turns",
    "vfsd.behind",
    "vfsd.beside",
    "vfsd.skills",
    "vfsd.store",
    *_RULES,
    *_BASE,
}
_FILES = {"vfsd.files", "vfsd.reader", "vfsd.paths", "vfsd.seeding"}
_DAEMON = {"vfsd.daemon", "vfsd.fuse", "vfsd.control", *_FILES, *_VOLUME, *_BESIDE}

MAY_IMPORT: dict[str, set[str]] = {
    "vfsd.errors": set(),
    "vfsd.clock": set(),
    "vfsd.config": {"vfsd.errors", "vfsd.store.base", "vfsd.tree.change"},
    "vfsd.tree": _RULES,
    "vfsd.brief": set(),
    "vfsd.store": {"vfsd.store", "vfsd.tree.change", "vfsd.errors", "vfsd.clock", "vfsd.brief"},
    "vfsd.volume": _VOLUME,
    "vfsd.changes": _VOLUME - {"vfsd.volume"},
    "vfsd.hydrate": _VOLUME,
    "vfsd.memory": _RULES,
    "vfsd.quota": {"vfsd.memory", "vfsd.skills", *_RULES},
    "vfsd.turns": _BASE,
    "vfsd.beside": _BASE,
    "vfsd.behind": {"vfsd.beside", "vfsd.skills", *_RULES, *_BASE},
    "vfsd.skills": {"vfsd.skills", "vfsd.config", *_RULES},
    "vfsd.fuse": {"vfsd.fuse", "vfsd.brief", *_VOLUME},
    "vfsd.paths": _RULES,
    "vfsd.reader": {"vfsd.paths", *_RULES},
    "vfsd.files": _FILES | _VOLUME,
    "vfsd.seeding": _FILES | _VOLUME,
    "vfsd.control": {"vfsd.control", *_FILES, *_VOLUME},
    "vfsd.answers": set(),
    "vfsd.client": {
        "vfsd.answers",
        "vfsd.control.client",
        "vfsd.control.protocol",
        "vfsd.mountpoint",
        "vfsd.registry",
        *_BASE,
    },
    "vfsd.herald": _BASE,
    "vfsd.mountpoint": _BASE,
    "vfsd.registry": _BASE,
    "vfsd.tasks": _BASE,
    "vfsd.daemon": _DAEMON,
    "vfsd.launch": _DAEMON,
    "vfsd.cli": {"vfsd"},
    "vfsd.__main__": {"vfsd"},
}
"""By module or package: the modules and packages of the project that it may import."""

ONLY_IN = {
    "pyfuse3": ("vfsd.fuse",),
    "redis": ("vfsd.store.redis",),
    "hiredis": ("vfsd.store.redis",),
    "sqlite3": ("vfsd.store.sqlite",),
    "click": ("vfsd.cli",),
    "yaml": ("vfsd.skills.frontmatter",),
}
"""By library: where alone it may be imported."""

PURE = (
    "vfsd.tree",
    "vfsd.errors",
    "vfsd.clock",
    "vfsd.config",
    "vfsd.paths",
    "vfsd.reader",
    "vfsd.skills",
    "vfsd.answers",
    "vfsd.client",
    "vfsd.control.client",
    "vfsd.control.protocol",
)
"""What must not import trio either."""


def modules() -> dict[str, Path]:
    """Return every module of the project by its dotted name."""
    found = {}
    for path in sorted((ROOT / "vfsd").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def is_in(name: str, package: str) -> bool:
    """Whether *name* is *package*, or anything within it."""
    return name == package or name.startswith(package + ".")


def imports(source: str) -> Iterator[str]:
    """Yield the dotted names that *source* imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                whole = f"{module}.{alias.name}"
                yield whole if whole in MODULES else module


def objections(name: str, source: str) -> list[str]:
    """Return what is wrong with the imports of module *name*, one phrase each."""
    home = next((package for package in MAY_IMPORT if is_in(name, package)), None)
    if home is None and name != "vfsd":
        return [f"{name} has no place in the table: say what it may import"]
    allowed = MAY_IMPORT[home] if home else {"vfsd.answers", "vfsd.client"}
    return [f"{name} imports {imported}" for imported in imports(source) if not _may(name, imported, allowed)]


def _may(name: str, imported: str, allowed: set[str]) -> bool:
    if imported.startswith("."):
        return False
    if is_in(imported, "vfsd"):
        return imported == "vfsd" or any(is_in(imported, package) for package in allowed)
    library = imported.partition(".")[0]
    if library == "trio":
        return not any(is_in(name, package) for package in PURE)
    return any(is_in(name, package) for package in ONLY_IN.get(library, ("vfsd",)))


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_what_lies_below_it(name: str) -> None:
    assert objections(name, MODULES[name].read_text()) == []


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_why_it_exists_and_can_be_read_in_one_go(name: str) -> None:
    source = MODULES[name].read_text()
    assert ast.get_docstring(ast.parse(source))
    assert len(source.splitlines()) < LONGEST


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_the_table_names_only_what_exists(package: str) -> None:
    assert package in MODULES


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("vfsd.errors", "import vfsd.clock"),
        ("vfsd.errors", "from vfsd import config"),
        ("vfsd.clock", "from vfsd.errors import FsError"),
        ("vfsd.tree.names", "import trio"),
        ("vfsd.tree.names", "def late():\n    import trio.lowlevel"),
        ("vfsd.tree.names", "import redis"),
        ("vfsd.tree.names", "from pyfuse3 import ROOT_INODE"),
        ("vfsd.tree.names", "from vfsd.config import MountConfig"),
        ("vfsd.tree.names", "from vfsd.store.base import Batch"),
        ("vfsd.tree.names", "from .tree import Tree"),
        ("vfsd.store.memory", "from vfsd.tree.tree import Tree"),
        ("vfsd.store.memory", "from vfsd.tree import content"),
        ("vfsd.store.memory", "from vfsd.volume import Volume"),
        ("vfsd.store.memory", "from vfsd.config import MountConfig"),
        ("vfsd.changes", "from vfsd.volume import Volume"),
        ("vfsd.store.memory", "import redis.exceptions"),
        ("vfsd.store.redis.store", "import pyfuse3"),
        ("vfsd.store.sqlite.store", "import hiredis"),
        ("vfsd.volume", "from vfsd.fuse.view import View"),
        ("vfsd.volume", "import vfsd.daemon"),
        ("vfsd", "from vfsd.volume import Volume"),
        ("vfsd.client", "import trio"),
        ("vfsd.client", "from vfsd.store import open_store"),
        ("vfsd.paths", "from vfsd.volume import Volume"),
        ("vfsd.reader", "from vfsd.files import Files"),
        ("vfsd.files", "from vfsd.control.server import Handler"),
        ("vfsd.fuse.session", "from vfsd.files import Files"),
        ("vfsd.fuse.view", "from vfsd.control import protocol"),
        ("vfsd.control.server", "from vfsd.fuse.view import View"),
        ("vfsd.fuse.view", "from vfsd import daemon"),
        ("vfsd.daemon", "from vfsd.cli.mount import mount"),
        ("vfsd.daemon", "import pyfuse3"),
        ("vfsd.cli.mount", "import pyfuse3"),
        ("vfsd.newcomer", "import os"),
    ],
)
def test_what_is_forbidden_is_found(name: str, source: str) -> None:
    assert len(objections(name, source)) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("vfsd.tree.names", "import errno\nfrom vfsd.errors import FsError\nfrom vfsd.tree import content"),
        ("vfsd.store.redis.store", "import hiredis, redis.exceptions\nfrom vfsd.tree.change import Change"),
        ("vfsd.fuse.view", "import pyfuse3\nfrom vfsd.tree.change import Op\nfrom vfsd import config"),
        ("vfsd.daemon", "from vfsd import __version__, clock\nfrom vfsd.fuse.session import FuseSession"),
        ("vfsd.cli.mount", "from vfsd.launch import run_detached\nfrom vfsd import mountpoint"),
    ],
)
def test_what_is_allowed_is_not_found(name: str, source: str) -> None:
    assert objections(name, source) == []
