"""Directory times after a crash: a time that was seen before it never comes back after a later change.

What counts is changed over the control socket, since a path walk would be a look.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.control.conftest import Connect
from tests.support.mounted import Mounted, MountFactory
from tests.support.syscalls import closing_fd
from vfsd import Vfs

STORED = "own/SKILL.md"


@pytest.fixture
def mounted(mount: MountFactory, store: str, connected: Connect) -> Mounted:
    """Return a mount with a skill that the agent made."""
    mounted = mount(store)
    connected(mounted).write_file(STORED, "text", parents=True)
    return mounted


def times(mounted: Mounted) -> list[int]:
    """Return the times that a change of the skill must move. Looking counts as seeing them."""
    return [path.stat().st_mtime_ns // 1_000_000 for path in (mounted.path / "own", mounted.path)]


CHANGES: dict[str, Callable[[Vfs], object]] = {
    "write": lambda vfs: vfs.write_file(STORED, "more"),
    "append": lambda vfs: vfs.append_file(STORED, "more"),
    "create": lambda vfs: vfs.write_file("own/references/new.md", "new", parents=True),
    "delete": lambda vfs: vfs.delete_file(STORED),
    "move": lambda vfs: vfs.move_file("own", "other"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_first_change_after_a_mount_moves_times_that_nobody_has_looked_at_since(
    mounted: Mounted, connected: Connect, change: Callable[[Vfs], object]
) -> None:
    before = times(mounted)
    mounted.kill()
    mounted.start()
    change(connected(mounted))
    after = [mounted.path.stat().st_mtime_ns // 1_000_000]
    if (mounted.path / "own").exists():
        after = times(mounted)
    assert all(new > old for old, new in zip(before[-len(after) :], after, strict=True))
    mounted.kill()
    mounted.start()
    assert mounted.path.stat().st_mtime_ns // 1_000_000 == after[-1]


SEEDINGS: dict[str, Callable[[Vfs], object]] = {
    "a file in the skill": lambda vfs: vfs.seed_file("own/references/seeded.md", "seeded"),
    "over a stored file": lambda vfs: vfs.seed_file("own/other.md", "seeded"),
    "and removed": lambda vfs: (vfs.seed_file("own/seeded.md", "seeded"), vfs.seed_remove("own/seeded.md")),
}


@pytest.mark.parametrize("seeding", SEEDINGS.values(), ids=SEEDINGS)
def test_a_time_that_a_seeding_moved_is_stored_with_the_next_change(
    mounted: Mounted, connected: Connect, seeding: Callable[[Vfs], object]
) -> None:
    vfs = connected(mounted)
    vfs.write_file("own/other.md", "stored")
    before = times(mounted)
    seeding(vfs)
    vfs.write_file(STORED, "changed")  # nobody has seen the times that the seeding moved
    mounted.kill()
    mounted.start()
    assert all(new > old for old, new in zip(before, times(mounted), strict=True))


def test_a_change_that_does_not_store_such_a_time_leaves_it_to_the_next(mounted: Mounted, connected: Connect) -> None:
    vfs = connected(mounted)
    before = times(mounted)
    vfs.seed_file("own/seeded.md", "seeded")
    with closing_fd(os.open(mounted.path / "own/seeded.md", os.O_RDONLY)) as fd:
        vfs.seed_file("own/another.md", "seeded")  # what opening has seen moves once more
        os.fchmod(fd, 0o600)  # stores a name in the directory, but not its time
    vfs.write_file(STORED, "changed")
    mounted.kill()
    mounted.start()
    assert all(new > old for old, new in zip(before, times(mounted), strict=True))


@pytest.mark.parametrize("seed", ["own/seeded.md", "own/references/deep/seeded.md"])
def test_a_seed_that_becomes_stored_without_a_change_of_content_shows_in_the_times_too(
    mounted: Mounted, connected: Connect, seed: str
) -> None:
    vfs = connected(mounted)
    before = times(mounted)
    vfs.seed_file(seed, "seeded")
    with closing_fd(os.open(mounted.path / seed, os.O_RDONLY)) as fd:
        vfs.seed_file("own/another.md", "seeded")
        os.fchmod(fd, 0o600)
    mounted.kill()
    mounted.start()
    assert (mounted.path / seed).read_bytes() == b"seeded"
    assert all(new > old for old, new in zip(before, times(mounted), strict=True))


TAKING_ALONG: dict[str, Callable[[Path, int], object]] = {
    "mode": lambda _path, fd: os.fchmod(fd, 0o600),
    "link": lambda path, _fd: os.link(path, path.parent.parent / "linked"),
    "one name less": lambda path, _fd: path.with_name("second").unlink(),
}


@pytest.mark.parametrize("take_along", TAKING_ALONG.values(), ids=TAKING_ALONG)
def test_a_truncation_that_is_stored_with_another_change_takes_its_times_along(
    mounted: Mounted, take_along: Callable[[Path, int], object]
) -> None:
    path = mounted.path / STORED
    os.link(path, path.with_name("second"))
    before = times(mounted)
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC)
    take_along(path, fd)
    mounted.kill()
    with suppress(OSError):  # of the mount that is gone
        os.close(fd)
    mounted.start()
    assert path.read_bytes() == b""
    assert all(new > old for old, new in zip(before, times(mounted), strict=True))
