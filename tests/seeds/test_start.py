"""A mount that cannot start with its seeds because of a stored file: the message names a remedy that works."""

from pathlib import Path

from tests.seeds.conftest import SKILL_MD
from tests.support.mounted import MountFactory


def test_a_file_that_blocks_a_seed_at_the_start_is_named_and_can_be_moved_away(
    mount: MountFactory, store: str, skill: Path
) -> None:
    mounted = mount(store)
    arguments = ["mount", str(mounted.path), "--scope", mounted.scope, "--log-file", str(mounted.log)]
    (mounted.path / "skills").write_text("mine")
    mounted.stop()
    done = mounted.vfsd(*arguments, "--skill", str(skill))
    remedy = "seed it elsewhere, or mount without it and move away what is there"
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"vfsd: cannot seed /skills/review: skills is no directory; {remedy}"
    mounted.expected.append("cannot seed")
    mounted.start()
    (mounted.path / "skills").rename(mounted.path / "mine")
    mounted.stop()
    mounted.start("--skill", str(skill))
    assert (mounted.path / "skills/review/SKILL.md").read_bytes() == SKILL_MD
