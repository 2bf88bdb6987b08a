"""Trees that are unpacked at a root where some of their directories are virtual: unpacking makes these real."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.seeds.conftest import RULES, Kept
from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer


@pytest.fixture
def mounted(mount: MountFactory, redis_server: RedisServer, skill: Path) -> Mounted:
    return mount(redis_server.url, "--skill", str(skill))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with two directories that the skill has too: one empty, one with other files in it."""
    top = tmp_path / "tree"
    (top / "scripts").mkdir(parents=True)
    (top / "references/sub").mkdir(parents=True)
    (top / "references/sub/own.md").write_text("own")
    for path in (top / "scripts", top / "references/sub", top / "references"):
        path.chmod(0o775)
        os.utime(path, (1_000_000_000, 1_000_000_000))
    return top


UNPACKERS = {
    "tar": "tar -C {tree} -c . | tar -x",
    "cp": "cp -a {tree}/. .",
    "rsync": "rsync -a {tree}/ .",
    "rsync in place": "rsync -a --inplace {tree}/ .",
}


@pytest.mark.parametrize("command", UNPACKERS.values(), ids=UNPACKERS)
def test_a_tree_is_unpacked_as_anywhere(mounted: Mounted, tree: Path, kept: Kept, command: str) -> None:
    root = mounted.path
    assert (root / "references/rules.md").read_bytes() == RULES
    done = subprocess.run(command.format(tree=tree), shell=True, cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("scripts", "references", "references/sub"):
        assert _facts(root / name) == _facts(tree / name)
    assert sorted(os.listdir(root / "references")) == ["sub"]
    assert kept(mounted) == {
        "scripts": None,
        "references": None,
        "references/sub": None,
        "references/sub/own.md": b"own",
    }


def _facts(path: Path) -> tuple[int, int, int]:
    info = path.stat()
    return info.st_mode, info.st_uid, info.st_mtime_ns


ATTRIBUTES: dict[str, Callable[[Path], object]] = {
    "mode": lambda path: path.chmod(0o700),
    "owner": lambda path: os.chown(path, 1, 1),
    "times": lambda path: os.utime(path, (1, 1)),
}


@pytest.mark.parametrize("change", ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_other_attributes_make_it_real_under_the_same_number(
    mounted: Mounted, kept: Kept, change: Callable[[Path], object]
) -> None:
    scripts = mounted.path / "scripts"
    number = scripts.stat().st_ino
    change(scripts)
    assert kept(mounted) == {"scripts": None}
    before = scripts.stat()
    mounted.remount()
    after = scripts.stat()
    assert (after.st_ino, _facts(scripts)) == (number, (before.st_mode, before.st_uid, before.st_mtime_ns))
    scripts.rmdir()
