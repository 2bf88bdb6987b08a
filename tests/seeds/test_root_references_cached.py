"""Names at the root that the kernel has cached as missing: a seeding makes the kernel ask again."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.control.conftest import Connect
from tests.seeds.conftest import SKILL_MD
from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer
from vfsd import Vfs

SKILL = "skills/review"
GUIDE = "references/guide.md"


@pytest.fixture
def mounted(mount: MountFactory, redis_server: RedisServer) -> Mounted:
    return mount(redis_server.url)


def _nothing(root: Path, vfs: Vfs) -> None:
    pass


def _agents_directory(root: Path, vfs: Vfs) -> None:
    (root / SKILL / "references").mkdir(parents=True)
    (root / SKILL / "references/own.md").touch()


def _plain_seeds(root: Path, vfs: Vfs) -> None:
    vfs.seed_file(f"{SKILL}/SKILL.md", SKILL_MD)
    vfs.seed_file(f"{SKILL}/{GUIDE}", "text")


def _a_skill_without_it(root: Path, vfs: Vfs) -> None:
    vfs.seed_skill(SKILL, SKILL_MD)
    _agents_directory(root, vfs)


def _deleted(root: Path, vfs: Vfs) -> None:
    vfs.seed_skill(SKILL, SKILL_MD, {"guide.md": "text"})
    (root / SKILL / GUIDE).unlink()
    (root / SKILL / "references").rmdir()


def _moved_there_and_back(root: Path, vfs: Vfs) -> None:
    vfs.seed_skill(SKILL, SKILL_MD, {"guide.md": "text"})
    (root / SKILL / "references").rename(root / "elsewhere")
    (root / "elsewhere").rename(root / SKILL / "references")


@pytest.mark.parametrize(
    "before",
    [_nothing, _agents_directory, _plain_seeds, _a_skill_without_it, _deleted, _moved_there_and_back],
    ids=lambda before: before.__name__.strip("_"),
)
def test_what_a_skill_brings_is_answered_whatever_was_there_before(
    mounted: Mounted, connected: Connect, before: Callable[[Path, Vfs], None]
) -> None:
    root, vfs = mounted.path, connected(mounted)
    before(root, vfs)
    assert not (root / "references").exists()  # which the kernel remembers
    vfs.seed_skill(SKILL, SKILL_MD, {"guide.md": "text"})
    assert (root / GUIDE).read_text() == "text"
