"""Moving directories with seeds in them: the seeds become stored, at any depth, and belong to no skill any longer."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.control.conftest import Connect
from tests.seeds.conftest import RULES, SCRIPT, SKILL_MD, Kept
from tests.support.mounted import Mounted, MountFactory
from tests.support.syscalls import renameat2
from vfsd.tree.plan_names import RENAME_EXCHANGE

SKILL = "skills/review"
FILES = {"SKILL.md": SKILL_MD, "references/rules.md": RULES, "scripts/run.sh": SCRIPT}


@pytest.fixture
def seeded(mount: MountFactory, store: str, skill: Path) -> Mounted:
    """Return a mount with a skill."""
    return mount(store, "--skill", str(skill))


@pytest.fixture
def root(seeded: Mounted) -> Path:
    return seeded.path


def files(found: dict[str, bytes | None]) -> dict[str, bytes]:
    return {path: content for path, content in found.items() if content is not None}


@pytest.fixture(params=["mount", "socket", "exchange"])
def move(request: pytest.FixtureRequest, seeded: Mounted, connected: Connect) -> Callable[[str, str], object]:
    """Return a function that moves a file from one path to another."""
    if request.param == "socket":
        return connected(seeded).move_file
    if request.param == "mount":
        return lambda source, target: (seeded.path / source).rename(seeded.path / target)

    def exchange(source: str, target: str) -> None:
        (seeded.path / target).mkdir()
        renameat2(seeded.path / source, seeded.path / target, RENAME_EXCHANGE)

    return exchange


@pytest.mark.parametrize("note", ["skills/note.md", f"{SKILL}/references/note.md"])
@pytest.mark.parametrize("moved", ["skills", SKILL])
def test_seeds_below_a_stored_directory_move_with_it(
    seeded: Mounted, kept: Kept, move: Callable[[str, str], object], note: str, moved: str
) -> None:
    (seeded.path / note).write_bytes(b"note")  # which makes the directories above it stored ones
    move(moved, "mine")
    expected = {f"{SKILL}/{name}": content for name, content in FILES.items()} | {note: b"note"}
    assert files(kept(seeded)) == {
        path.replace(moved, "mine", 1) if path.startswith(f"{moved}/") else path: content
        for path, content in expected.items()
    }


def test_a_stored_file_under_a_seed_that_moves_is_replaced_by_it(seeded: Mounted, root: Path, kept: Kept) -> None:
    (root / SKILL / "references/rules.md").write_bytes(b"stored")
    os.link(root / SKILL / "references/rules.md", root / "other")
    seeded.remount()
    assert (root / SKILL / "references/rules.md").read_bytes() == RULES
    (root / "skills").rename(root / "mine")
    found = files(kept(seeded))
    assert (found["mine/review/references/rules.md"], found["other"]) == (RULES, b"stored")
    assert (root / "other").stat().st_nlink == 1


def test_what_is_moved_is_no_skill_any_more(seeded: Mounted, root: Path, connected: Connect, skill: Path) -> None:
    vfs = connected(seeded)
    assert (root / "references/rules.md").exists()
    (root / SKILL).rename(root / "skills/old")
    assert vfs.seed_list() == ([], [])
    assert not (root / "references/rules.md").exists()
    vfs.seed_skill(SKILL, SKILL_MD, {"rules.md": "seeded again"})
    assert [found.dir for found in vfs.seed_list().skills] == [SKILL]
    assert (root / "references/rules.md").read_text() == "seeded again"
    assert (root / "skills/old/references/rules.md").read_bytes() == RULES


def test_a_moved_part_belongs_to_no_skill_until_it_is_seeded_again(
    seeded: Mounted, root: Path, connected: Connect
) -> None:
    vfs, references, other = connected(seeded), root / SKILL / "references", root / SKILL / "other"
    references.rename(other)
    assert not (root / "references").exists()
    assert not (root / "other").exists()
    other.rename(references)
    assert not (root / "references").exists()
    assert (root / "scripts/run.sh").exists()
    assert vfs.seed_skill(SKILL, SKILL_MD, {"rules.md": "again"})
    assert (root / "references/rules.md").read_text() == "again"
