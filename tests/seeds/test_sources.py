"""Reading skills and trees from a disk: modes, links as they are or followed, and what cannot be seeded."""

import os
import stat
from pathlib import Path

import pytest

from tests.seeds.conftest import SKILL_MD
from vfsd.cli.parsing import parse_seed, parse_skill
from vfsd.config import SeedSpec
from vfsd.errors import UsageError
from vfsd.seeds.sources import read_seed, read_skill


def test_a_skill_follows_links_and_a_tree_keeps_them(skill: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/\udcff").write_bytes(b"shared")
    (skill / "linked").symlink_to("../shared")
    source = read_skill(SeedSpec(str(skill), None))
    assert source.dest == b"/skills/review"
    assert stat.S_ISDIR(source.nodes[b"linked",].mode)
    assert source.nodes[b"linked", b"\xff"].content.chunks == {0: b"shared"}
    assert source.nodes[b"scripts", b"run.sh"].mode == stat.S_IFREG | 0o755
    tree = read_seed(SeedSpec(str(skill), "/t"))
    assert tree.nodes[b"linked",].target == b"../shared"
    assert (b"linked", b"\xff") not in tree.nodes


def test_what_cannot_be_seeded(skill: Path, tmp_path: Path) -> None:
    (skill / "round").symlink_to(".")
    with pytest.raises(UsageError, match="in a circle"):
        read_skill(SeedSpec(str(skill), None))
    (skill / "round").unlink()
    (skill / "dangling").symlink_to("nowhere")
    with pytest.raises(UsageError, match="dangling: cannot be seeded: No such file"):
        read_skill(SeedSpec(str(skill), None))
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="neither a file, a directory nor a link"):
        read_seed(SeedSpec(str(tmp_path), "/t"))
    with pytest.raises(UsageError, match="a skill is a directory"):
        read_skill(SeedSpec(str(tmp_path), None))


def test_a_destination_follows_the_last_colon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_skill("a") == SeedSpec(f"{tmp_path}/a", None)
    assert parse_skill("a:/s/b") == SeedSpec(f"{tmp_path}/a", "/s/b")
    assert parse_skill("a:b:") == SeedSpec(f"{tmp_path}/a:b", None)
    assert parse_seed("/x:y:z") == SeedSpec("/x:y", "z")
    for wrong in ("a", "a:", ":z", ""):
        with pytest.raises(UsageError):
            parse_seed(wrong)
    with pytest.raises(UsageError):
        parse_skill("")


def test_a_skill_is_read_completely(skill: Path) -> None:
    nodes = read_skill(SeedSpec(str(skill), "/x")).nodes
    assert nodes[b"SKILL.md",].content.chunks == {0: SKILL_MD}
    assert set(nodes) == {
        (),
        (b"SKILL.md",),
        (b"scripts",),
        (b"scripts", b"run.sh"),
        (b"references",),
        (b"references", b"rules.md"),
    }
