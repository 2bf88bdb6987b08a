"""The commands that seed, and that list and remove seeds: what they say, and how they end."""

import json
import os
from pathlib import Path

import pytest

from tests.seeds.conftest import SKILL_MD
from tests.support.cli import failure, statuses, success
from tests.support.mounted import MountFactory, run_vfsd
from tests.support.servers import RedisServer


def test_commands(mount: MountFactory, redis_server: RedisServer, skill: Path, tmp_path: Path) -> None:
    mounted = mount(redis_server.url)
    path = str(mounted.path)
    assert success(mounted.vfsd("skill", "add", path, f"{skill}", f"{skill}:/other")) == (
        "seeded /skills/review\nseeded /other\n"
    )
    assert (mounted.path / "other/scripts/run.sh").stat().st_mode & 0o777 == 0o755
    assert "already seeded, with the same content" in success(mounted.vfsd("skill", "add", path, str(skill)))
    (tmp_path / "plain").write_bytes(b"plain")
    assert success(mounted.vfsd("seed", path, "plain", "--from", str(tmp_path / "plain"))) == "seeded plain\n"
    assert (mounted.path / "plain").read_bytes() == b"plain"
    found = json.loads(success(mounted.vfsd("skill", "list", path, "--json")))
    assert found["skills"][1] == {
        "dir": "skills/review",
        "name": "review",
        "description": "how to review",
        "files": ["SKILL.md", "references/rules.md", "scripts/run.sh"],
    }
    assert {"path": "plain", "state": "seeded"} in found["seeds"]
    assert success(mounted.vfsd("skill", "list", path)).splitlines()[-1] == "2 skills, 1 other seed"
    assert "several skills have this name" in failure(mounted.vfsd("skill", "remove", path, "review"), 2)
    assert success(mounted.vfsd("skill", "remove", path, "other")) == "removed 3 files\n"
    assert success(mounted.vfsd("skill", "remove", path, "review")) == "removed 3 files\n"
    assert os.listdir(mounted.path) == ["plain"]
    (entry,) = statuses(mounted, mounted.path)
    assert (entry["files"], entry["seeded"], entry["shadowed"]) == (0, 1, 0)


def test_content_on_standard_input(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    path = str(mounted.path)
    run = mounted.vfsd
    assert success(run("skill", "add", path, "-", text=SKILL_MD.decode())) == "seeded /skills/review\n"
    assert success(run("seed", path, "file", "--from", "-", text="text")) == "seeded file\n"
    assert (mounted.path / "skills/review/SKILL.md").read_bytes() == SKILL_MD
    assert (mounted.path / "file").read_bytes() == b"text"
    assert success(run("skill", "add", path, "-:here/it", text=SKILL_MD.decode())) == "seeded here/it\n"
    assert (mounted.path / "here/it/SKILL.md").read_bytes() == SKILL_MD
    assert "only one skill can come on standard input" in failure(run("skill", "add", path, "-", "-:there"), 2)
    line = failure(run("skill", "add", path, "-", text="# no head"), 2)
    assert line.startswith("standard input: SKILL.md: it has no front matter")


def test_commands_that_cannot_be_done(
    mount: MountFactory, redis_server: RedisServer, skill: Path, tmp_path: Path
) -> None:
    mounted = mount(redis_server.url)
    path = str(mounted.path)
    assert "a skill is a directory" in failure(mounted.vfsd("skill", "add", path, str(tmp_path / "run")), 2)
    assert "No such file" in failure(mounted.vfsd("skill", "add", path, str(tmp_path / "nowhere")), 2)
    assert "No such file" in failure(mounted.vfsd("seed", path, "x", "--from", str(tmp_path / "nowhere")), 2)
    assert "nothing is seeded there" in failure(mounted.vfsd("skill", "remove", path, "nothing"), 2)
    assert "no vfsd mount" in failure(mounted.vfsd("skill", "list", str(tmp_path)), 12)
    assert "seed it with vfsd mount --seed" in failure(mounted.vfsd("seed", path, "x", "--from", str(tmp_path)), 2)
    again = run_vfsd("mount", path, "--scope", mounted.scope, "--skill", str(skill), env=mounted.environment)
    assert "already mounted there, and nothing was seeded" in failure(again, 9)


@pytest.mark.parametrize(
    ("dest", "why"),
    [
        ("file", "a file is there, where a skill needs a directory"),
        ("file/below/it", "file is no directory"),
        ("out/review", "a symbolic link leads out of the scope"),
        ("n" * 256, "File name too long"),
    ],
)
def test_a_path_where_no_skill_can_be_is_named(
    mount: MountFactory, redis_server: RedisServer, skill: Path, dest: str, why: str
) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "file").touch()
    (mounted.path / "out").symlink_to("/etc")
    line = failure(mounted.vfsd("skill", "add", str(mounted.path), f"{skill}:{dest}"), 2)
    assert line.startswith(f"{dest}: ")
    assert why in line


def test_a_name_with_a_colon_in_it(mount: MountFactory, redis_server: RedisServer, skill: Path) -> None:
    mounted, odd = mount(redis_server.url), skill.rename(skill.with_name("a:b"))
    line = failure(mounted.vfsd("skill", "add", str(mounted.path), str(odd)), 2)
    assert line.strip() == f"{odd}: DEST follows the last colon, and there is no {str(odd)[:-2]}: write {odd}:DEST"
    assert success(mounted.vfsd("skill", "add", str(mounted.path), f"{odd}:")) == "seeded /skills/review\n"


def test_a_skill_at_the_root(mount: MountFactory, redis_server: RedisServer, skill: Path) -> None:
    mounted = mount(redis_server.url)
    assert success(mounted.vfsd("skill", "add", str(mounted.path), f"{skill}:/")) == "seeded /\n"
    assert success(mounted.vfsd("skill", "list", str(mounted.path))) == (
        "/  review, 3 files: how to review\n1 skill, 0 other seeds\n"
    )
    assert success(mounted.vfsd("skill", "remove", str(mounted.path), "review")) == "removed 3 files\n"


def test_a_start_with_a_wrong_seed_is_refused_before_anything_happens(
    mount: MountFactory, redis_server: RedisServer, skill: Path, tmp_path: Path
) -> None:
    mounted = mount(redis_server.url, start=False)
    (skill / "SKILL.md").write_text("---\nname: review\n---\n")
    arguments = ["mount", str(mounted.path), "--scope", mounted.scope, "--log-file", str(mounted.log)]
    for wrong, why in (
        (["--skill", str(tmp_path / "nowhere")], "No such file"),
        (["--skill", str(skill)], "lacks the description"),
        (["--seed", str(tmp_path)], "expected SRC:DEST"),
        (["--seed", f"{tmp_path / 'nowhere'}:/x"], "No such file"),
    ):
        assert why in failure(run_vfsd(*arguments, *wrong, env=mounted.environment), 2)
        with redis_server.client() as client:
            assert client.keys(f"*{mounted.scope}*") == []
        assert not mounted.path.exists()
