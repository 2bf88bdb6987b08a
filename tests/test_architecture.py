"""Which part of vfsd may import which, read from the source. Imports inside functions count too.

cli → daemon → {fuse, control → files} → seeds → scope → store → tree
cli → client → {control.protocol, host}
"""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

BELOW = {
    "errors": (),
    "clock": (),
    "printable": (),
    "counted": (),
    "shell": (),
    "busy_poll": (),
    "tree": ("errors", "counted"),
    "store": ("tree", "clock", "busy_poll", "printable"),
    "config": ("store",),
    "scope": ("config",),
    "seeds": ("scope",),
    "files": ("seeds",),
    "fuse": ("seeds",),
    "control.protocol": (),
    "control": ("files", "control.protocol"),
    "host": ("config", "shell"),
    "client": ("control.protocol", "host"),
    "daemon": ("fuse", "control", "host"),
    "cli": ("daemon", "client"),
    "__main__": ("cli",),
}
"""The arrows. A part may import itself, what is named here for it, and whatever lies below that."""

ONLY_IN = {
    "pyfuse3": "fuse",
    "redis": "store.redis",
    "hiredis": "store.redis",
    "sqlite3": "store.sqlite",
    "click": "cli",
    "yaml": "seeds.frontmatter",
}
"""The one part that may import a library."""

WITHOUT_TRIO = (
    "tree",
    "errors",
    "clock",
    "config",
    "seeds",
    "files.resolve",
    "files.read",
    "control.protocol",
    "client",
)

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "vfsd").rglob("*.py"))
}


def is_in(name: str, part: str) -> bool:
    """Whether the dotted *name* is *part* or lies in it."""
    return name == part or name.startswith(part + ".")


def part_of(name: str) -> str | None:
    """Return the most specific part that module ``vfsd.NAME`` belongs to."""
    return max((part for part in BELOW if is_in(name, part)), key=len, default=None)


def reachable(part: str) -> set[str]:
    """Return *part* and every part below it."""
    return {part}.union(*(reachable(below) for below in BELOW[part]))


def imports(source: str) -> Iterator[str]:
    """Yield the dotted names that *source* imports, anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                dotted = f"{module}.{alias.name}"
                yield dotted if dotted in MODULES else module


def forbidden(name: str, source: str) -> list[str]:
    """Return the imports in *source* that the module ``vfsd.NAME`` may not have."""
    return [imported for imported in imports(source) if not _may_import(name, imported)]


def _may_import(name: str, imported: str) -> bool:
    if imported == "vfsd":
        return True
    if imported.startswith("."):
        return False
    if is_in(imported, "vfsd"):
        part, other = part_of(name), part_of(imported.removeprefix("vfsd."))
        return part is not None and other in reachable(part)
    library = imported.partition(".")[0]
    if library == "trio":
        return not any(is_in(name, part) for part in WITHOUT_TRIO)
    return is_in(name, ONLY_IN.get(library, name))


@pytest.mark.parametrize("name", [name.removeprefix("vfsd.") for name in MODULES if name != "vfsd"])
def test_a_module_imports_only_what_lies_below_it(name: str) -> None:
    assert forbidden(name, MODULES[f"vfsd.{name}"].read_text()) == []


def test_the_package_itself_is_a_client() -> None:
    assert forbidden("client", MODULES["vfsd"].read_text()) == []


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_why_it_exists(name: str) -> None:
    assert len(ast.get_docstring(ast.parse(MODULES[name].read_text())) or "") > 1


def test_no_modules_import_each_other_in_a_circle() -> None:
    arrows = {name: {each for each in imports(path.read_text()) if each in MODULES} for name, path in MODULES.items()}
    list(TopologicalSorter(arrows).static_order())  # raises CycleError, which names the circle


@pytest.mark.parametrize("part", BELOW)
def test_every_part_exists(part: str) -> None:
    assert f"vfsd.{part}" in MODULES


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("errors", "import vfsd.clock"),
        ("tree.plan_names", "def late():\n    import trio.lowlevel"),
        ("tree.plan_names", "from vfsd.config import MountConfig"),
        ("tree.plan_names", "from .tree import Tree"),
        ("store.memory", "from vfsd.scope.volume import Volume"),
        ("store.memory", "from vfsd.config import MountConfig"),
        ("store.memory", "import redis.exceptions"),
        ("scope.pipeline", "from vfsd.seeds.overlay import SeedOverlay"),
        ("seeds.overlay", "from vfsd.files.write import FileWriter"),
        ("files.write", "from vfsd.control.server import Handler"),
        ("fuse.session", "from vfsd.files.write import FileWriter"),
        ("fuse.session", "from vfsd.control import protocol"),
        ("control.protocol", "import trio"),
        ("client.vfs", "from vfsd.control.server import listen"),
        ("client.vfs", "from vfsd.store.url import open_store\nimport trio"),
        ("daemon.lifecycle", "import pyfuse3"),
        ("daemon.lifecycle", "from vfsd.cli.mount import mount"),
        ("newcomer", "from vfsd.errors import VfsdError"),
    ],
)
def test_what_is_forbidden_is_found(name: str, source: str) -> None:
    assert forbidden(name, source)
