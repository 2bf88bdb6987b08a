"""Changes of seeded files on a real mount: every change makes the seed stored, and survives a crash."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.seeds.conftest import RULES, SCRIPT, SKILL_MD, Kept
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.syscalls import closing_fd

SKILL = "skills/review"
MD = f"{SKILL}/SKILL.md"
RULE = f"{SKILL}/references/rules.md"
RUN = f"{SKILL}/scripts/run.sh"
ALL = {MD: SKILL_MD, RULE: RULES, RUN: SCRIPT}
ABOVE: dict[str, bytes | None] = {"skills": None, SKILL: None}


@pytest.fixture
def seeded(mount: MountFactory, store: str, skill: Path) -> Mounted:
    """Return a mount with a skill."""
    mounted = mount(store, start=False)
    mounted.start("--skill", str(skill))
    return mounted


def crash(mounted: Mounted, *options: str) -> None:
    """Kill the daemon, and mount again with *options*."""
    mounted.kill()
    mounted.start(*options)


def contents(top: Path) -> dict[str, bytes | None]:
    """Return what the mount shows: content by path, None for directories."""
    paths = (path for path in sorted(top.rglob("*")))
    return {str(path.relative_to(top)): None if path.is_dir() else path.read_bytes() for path in paths}


def test_a_skill_is_there_and_the_store_knows_nothing_of_it(seeded: Mounted, kept: Kept) -> None:
    assert {path: content for path, content in contents(seeded.path).items() if content is not None} == ALL
    assert (seeded.path / RUN).stat().st_mode & 0o777 == 0o755
    assert (seeded.path / MD).stat().st_uid == os.geteuid()
    assert kept(seeded) == {}
    crash(seeded)
    assert os.listdir(seeded.path) == []


def facts(path: Path) -> tuple[int, ...]:
    """Return the part of a stat that must be the same after a remount."""
    info = path.stat()
    return info.st_ino, info.st_mode, info.st_nlink, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _overwrite(path: Path) -> None:
    path.write_bytes(b"mine")


def _patch(path: Path) -> None:
    with closing_fd(os.open(path, os.O_WRONLY)) as fd:
        os.pwrite(fd, b"Mine", 20_000)


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def _make_empty(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (_overwrite, b"mine"),
        (_patch, RULES[:20_000] + b"Mine" + RULES[20_004:]),
        (_append, RULES + b"more"),
        (partial(os.truncate, length=17_000), RULES[:17_000]),
        (partial(os.truncate, length=0), b""),
        (_make_empty, b""),
        (partial(os.chmod, mode=0o600), RULES),
        (partial(os.utime, ns=(5, 7)), RULES),
    ],
    ids=["overwrite", "patch", "append", "shorten", "cut", "open and close", "chmod", "utimens"],
)
def test_a_changed_seed_is_stored_completely(
    seeded: Mounted, kept: Kept, change: Callable[[Path], None], after: bytes
) -> None:
    change(seeded.path / RULE)
    assert (seeded.path / RULE).read_bytes() == after
    before = facts(seeded.path / RULE)
    with closing_fd(os.open(seeded.path / RULE, os.O_RDONLY)) as fd:
        os.fsync(fd)
    assert kept(seeded) == {**ABOVE, f"{SKILL}/references": None, RULE: after}
    crash(seeded)
    assert contents(seeded.path) == kept(seeded)
    assert facts(seeded.path / RULE) == before


def test_a_crash_between_emptying_and_writing_leaves_the_seed(seeded: Mounted, kept: Kept, skill: Path) -> None:
    with closing_fd(os.open(seeded.path / MD, os.O_WRONLY | os.O_TRUNC)):
        assert (seeded.path / MD).read_bytes() == b""
        assert kept(seeded) == {}
        crash(seeded, "--skill", str(skill))
    assert (seeded.path / MD).read_bytes() == SKILL_MD


def test_a_file_added_among_seeds_is_stored_with_the_directories_it_needs(seeded: Mounted, kept: Kept) -> None:
    (seeded.path / SKILL / "notes.md").write_bytes(b"mine")
    (seeded.path / SKILL / "scripts/deep/er").mkdir(parents=True)
    expected = {**ABOVE, f"{SKILL}/notes.md": b"mine"}
    expected |= {f"{SKILL}/scripts": None, f"{SKILL}/scripts/deep": None, f"{SKILL}/scripts/deep/er": None}
    assert kept(seeded) == expected
    crash(seeded)
    assert contents(seeded.path) == expected


def test_a_file_moved_or_linked_out_is_stored_and_one_moved_in_too(seeded: Mounted, kept: Kept) -> None:
    (seeded.path / RUN).rename(seeded.path / "run.sh")
    assert kept(seeded) == {"run.sh": SCRIPT}
    os.link(seeded.path / MD, seeded.path / "link.md")
    expected = {**ABOVE, "run.sh": SCRIPT, "link.md": SKILL_MD, MD: SKILL_MD}
    assert kept(seeded) == expected
    (seeded.path / "run.sh").rename(seeded.path / SKILL / "scripts" / "again.sh")
    del expected["run.sh"]
    expected |= {f"{SKILL}/scripts": None, f"{SKILL}/scripts/again.sh": SCRIPT}
    assert kept(seeded) == expected
    crash(seeded)
    assert contents(seeded.path) == expected
    assert (seeded.path / "link.md").stat().st_nlink == 2


def test_a_moved_directory_takes_all_with_it(seeded: Mounted, kept: Kept) -> None:
    (seeded.path / "place").mkdir()
    (seeded.path / SKILL).rename(seeded.path / "place/mine")
    expected = {path.replace(SKILL, "place/mine"): content for path, content in contents(seeded.path).items()}
    del expected["skills"]  # in memory alone: nothing is left in it
    assert kept(seeded) == expected
    crash(seeded)
    assert contents(seeded.path) == expected
    assert (seeded.path / "place/mine/scripts/run.sh").stat().st_mode & 0o777 == 0o755


def test_what_is_deleted_is_gone_until_the_next_seeding(seeded: Mounted, kept: Kept, skill: Path) -> None:
    (seeded.path / MD).unlink()
    assert not (seeded.path / MD).exists()
    (seeded.path / RUN).unlink()
    (seeded.path / SKILL / "scripts").rmdir()
    assert kept(seeded) == {}
    crash(seeded, "--skill", str(skill))
    assert {path for path, content in contents(seeded.path).items() if content is not None} == set(ALL)


def test_a_deleted_seed_that_is_open_lives_on(seeded: Mounted) -> None:
    with closing_fd(os.open(seeded.path / MD, os.O_RDWR)) as fd:
        (seeded.path / MD).unlink()
        os.pwrite(fd, b"===", 0)
        assert os.pread(fd, 100, 0) == b"===" + SKILL_MD[3:]


def test_modes_of_a_seeded_directory_are_stored_and_the_next_seeding_uses_it(
    seeded: Mounted, kept: Kept, skill: Path
) -> None:
    (seeded.path / SKILL).chmod(0o700)
    assert kept(seeded) == ABOVE
    crash(seeded, "--skill", str(skill))
    assert (seeded.path / SKILL).stat().st_mode & 0o777 == 0o700
    assert (seeded.path / MD).read_bytes() == SKILL_MD
    assert kept(seeded) == ABOVE


def test_the_seed_wins_at_the_next_mount_and_hides_what_was_stored(seeded: Mounted, kept: Kept, skill: Path) -> None:
    (seeded.path / MD).write_bytes(b"mine")
    crash(seeded, "--skill", str(skill))
    assert (seeded.path / MD).read_bytes() == SKILL_MD
    assert kept(seeded)[MD] == b"mine"
    crash(seeded)
    assert (seeded.path / MD).read_bytes() == b"mine"


def test_with_keep_the_stored_file_wins(seeded: Mounted, kept: Kept, skill: Path) -> None:
    (seeded.path / MD).write_bytes(b"mine")
    crash(seeded, "--skill", str(skill), "--seed-policy", "keep")
    assert (seeded.path / MD).read_bytes() == b"mine"
    assert (seeded.path / RULE).read_bytes() == RULES
    assert set(kept(seeded)) == {*ABOVE, MD}


@pytest.mark.parametrize("how", ["write", "delete", "move", "replace"])
def test_changing_a_seed_replaces_the_stored_file_that_it_hides(
    seeded: Mounted, kept: Kept, skill: Path, how: str
) -> None:
    (seeded.path / MD).write_bytes(b"stored")
    os.link(seeded.path / MD, seeded.path / "other name")
    crash(seeded, "--skill", str(skill))
    assert (seeded.path / "other name").stat().st_nlink == 2
    expected: dict[str, bytes | None] = {**ABOVE, "other name": b"stored"}
    if how == "write":
        (seeded.path / MD).write_bytes(b"new")
        expected[MD] = b"new"
    elif how == "delete":
        (seeded.path / MD).unlink()
    elif how == "move":
        (seeded.path / MD).rename(seeded.path / "moved")
        expected["moved"] = SKILL_MD
    else:
        (seeded.path / "new").write_bytes(b"new")
        (seeded.path / "new").rename(seeded.path / MD)
        expected[MD] = b"new"
    assert kept(seeded) == expected
    wait_until(lambda: (seeded.path / "other name").stat().st_nlink == 1, "the kernel to know of a link less")
    crash(seeded)
    assert contents(seeded.path) == expected
    assert (seeded.path / "other name").stat().st_nlink == 1
