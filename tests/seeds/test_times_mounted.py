"""Directory times as a caching program sees them on a real mount: at once, after a remount, with many writers."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from tests.control.conftest import Connect
from tests.mount.test_commits import Counting
from tests.support.files import MILLISECOND
from tests.support.mounted import Mounted, MountFactory, run_vfsd
from tests.support.servers import RedisServer, redis_program
from tests.support.syscalls import closing_fd

WRITERS, ROUNDS = 8, 15


class Skilled:
    """A mount with ``skills/review/{SKILL.md,references/deep/guide.md}`` and ``work/notes/todo.md``."""

    def __init__(self, mounted: Mounted) -> None:
        self.mounted = mounted
        self.root = mounted.path
        self.review = self.root / "skills" / "review"
        self.deep = self.review / "references" / "deep"
        self.guide = self.deep / "guide.md"
        self.notes = self.root / "work" / "notes"
        self.up = (self.review, self.root / "skills", self.root)

    def stock(self) -> "Skilled":
        self.deep.mkdir(parents=True)
        self.notes.mkdir(parents=True)
        for file in (self.review / "SKILL.md", self.guide, self.notes / "todo.md"):
            file.write_text("text")
        return self


def times(*paths: Path) -> list[int]:
    return [path.stat().st_mtime_ns // MILLISECOND for path in paths]


def moved(call: Callable[[], object], *paths: Path) -> list[bool]:
    """Return which times of *paths*, in the milliseconds that frameworks compare, have moved by *call*."""
    before = times(*paths)
    call()
    after = times(*paths)
    assert all(new >= old for old, new in zip(before, after, strict=True))
    return [new != old for old, new in zip(before, after, strict=True)]


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


@pytest.fixture
def skilled(mount: MountFactory, redis_server: RedisServer) -> Skilled:
    return Skilled(mount(redis_server.url)).stock()


def test_every_change_below_a_skill_is_seen_at_once(skilled: Skilled) -> None:
    deep, guide, up = skilled.deep, skilled.guide, skilled.up
    os.link(guide, skilled.root / "linked")
    calls: dict[str, Callable[[], object]] = {
        "append": lambda: append(guide),
        "rewrite": lambda: guide.write_text("new"),
        "truncate": lambda: os.truncate(guide, 1),
        "empty by opening": lambda: os.close(os.open(guide, os.O_WRONLY | os.O_TRUNC)),
        "create": (deep / "new").touch,
        "symlink": lambda: (deep / "link").symlink_to("new"),
        "link": lambda: os.link(guide, deep / "linked"),
        "write to a link": lambda: (deep / "linked").write_text("by a link"),
        "write to a link elsewhere": lambda: append(skilled.root / "linked"),
        "rename": lambda: (deep / "new").rename(deep / "renamed"),
        "mkdir": (deep / "sub").mkdir,
        "move out": lambda: (deep / "renamed").rename(skilled.root / "out"),
        "move in": lambda: (skilled.root / "out").rename(deep / "sub" / "in"),
        "unlink": (deep / "sub" / "in").unlink,
        "rmdir": (deep / "sub").rmdir,
        "another program": lambda: subprocess.run(["sh", "-c", f"echo more >> '{guide}'"], check=True),
    }
    seen = {name: moved(call, *up) for name, call in calls.items()}
    assert seen == dict.fromkeys(calls, [True] * len(up))


def test_every_further_change_is_seen_too(skilled: Skilled) -> None:
    with closing_fd(os.open(skilled.guide, os.O_WRONLY | os.O_APPEND)) as fd:
        for _ in range(200):
            assert all(moved(lambda: os.write(fd, b"x"), *skilled.up))


def test_elsewhere_posix_rules(skilled: Skilled) -> None:
    todo, directories = skilled.notes / "todo.md", (skilled.notes, skilled.notes.parent, skilled.root)
    assert moved(lambda: append(todo), *directories) == [False, False, False]
    assert moved((skilled.notes / "new").touch, *directories) == [True, False, False]
    assert moved(lambda: skilled.guide.chmod(0o600), *skilled.up) == [False, False, False]
    assert moved(lambda: append(skilled.guide), skilled.deep, skilled.deep.parent) == [False, False]


@pytest.mark.parametrize(("kind", "expected"), [("posix", False), ("all", True)])
def test_posix_and_all(mount: MountFactory, redis_server: RedisServer, kind: str, expected: bool) -> None:
    skilled = Skilled(mount(redis_server.url, "--directory-mtime", kind)).stock()
    directories = (skilled.deep, skilled.deep.parent, *skilled.up, skilled.notes, skilled.notes.parent)

    def change() -> None:
        append(skilled.guide)
        append(skilled.notes / "todo.md")

    assert set(moved(change, *directories)) == {expected}


def test_an_unknown_rule_is_refused(tmp_path: Path) -> None:
    arguments = ("mount", os.fspath(tmp_path / "m"), "--scope", "s", "--store", "memory:", "--directory-mtime", "often")
    done = run_vfsd(*arguments, env={**os.environ, "VFSD_RUNTIME_DIR": os.fspath(tmp_path)})
    assert done.returncode == 2
    assert "'often' is not one of 'skills', 'posix', 'all'" in done.stderr


@pytest.mark.parametrize("end", [Mounted.stop, Mounted.kill])
def test_a_time_from_before_a_restart_moves_too(
    mount: MountFactory, redis_server: RedisServer, end: Callable[[Mounted], object]
) -> None:
    mounted = mount(redis_server.url)
    skilled = Skilled(mounted).stock()
    before = times(*skilled.up)
    end(mounted)
    mounted.start()
    append(skilled.guide)  # nobody has looked since the mount came up
    after = times(*skilled.up)
    assert all(new > old for old, new in zip(before, after, strict=True))
    end(mounted)
    mounted.start()
    assert times(*skilled.up) == after


def test_an_emptied_file_moves_times_that_are_stored_when_it_is_closed(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    mounted = mount(redis_server.url)
    skilled = Skilled(mounted).stock()
    times(*skilled.up)
    os.close(os.open(skilled.guide, os.O_WRONLY | os.O_TRUNC))
    after = times(*skilled.up)
    mounted.remount()
    assert times(*skilled.up) == after
    assert skilled.guide.read_bytes() == b""


def test_a_change_below_a_skill_is_one_transaction(mount: MountFactory) -> None:
    with RedisServer(redis_program()) as server, server.client() as client:
        mounted = mount(server.url, "--debug")
        skilled, counted = Skilled(mounted).stock(), Counting(client, mounted.log)
        with closing_fd(os.open(skilled.guide, os.O_WRONLY)) as fd:
            for _ in range(3):
                times(*skilled.up)
                assert counted.transactions(lambda: os.write(fd, b"x")) == 1
        mounted.clean_up()


def test_all_write_and_look_at_once(skilled: Skilled) -> None:
    """Each writer sees its own writes in all times above them, whatever other writers do meanwhile."""

    def write(number: int) -> None:
        paths = [above / f"{number}" for above in (skilled.deep, skilled.review, skilled.root / "skills")]
        for round_ in range(ROUNDS):
            paths[0].mkdir()
            for _ in range(5):
                assert all(moved(lambda: append(paths[0] / "file"), *skilled.up)), f"writer {number}, round {round_}"
            for source, target in pairwise(paths):
                source.rename(target)
            (paths[-1] / "file").unlink()
            paths[-1].rmdir()

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    before = times(*skilled.up)
    skilled.mounted.remount()
    assert times(*skilled.up) == before


_LOOKER = """
import os, sys
paths = sys.argv[1:]
print("ready", flush=True)
while True:
    for path in paths:
        os.stat(path); os.listdir(path)
"""


@pytest.fixture
def lookers(skilled: Skilled) -> Iterator[None]:
    """Let two processes look at the directories all the time."""
    command = [sys.executable, "-c", _LOOKER, *map(os.fspath, (*skilled.up, skilled.deep))]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, cwd="/") for _ in range(2)]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_readers_that_poll_do_not_block_writers(skilled: Skilled, lookers: None) -> None:
    with closing_fd(os.open(skilled.guide, os.O_WRONLY | os.O_APPEND)) as fd:
        for number in range(ROUNDS):
            assert all(moved(lambda: os.write(fd, b"x"), *skilled.up))
            skilled.guide.rename(skilled.deep / "other")
            (skilled.deep / "other").rename(skilled.guide)
            (skilled.review / f"{number}").mkdir()
            (skilled.review / f"{number}").rmdir()


def test_seeding_moves_times_by_the_same_rule(skilled: Skilled, connected: Connect) -> None:
    vfs = connected(skilled.mounted)
    md = "---\nname: seeded\ndescription: seeded\n---\n"
    skill, up = skilled.root / "skills" / "seeded", (skilled.root / "skills", skilled.root)
    calls: dict[str, Callable[[], object]] = {
        "seed": lambda: vfs.seed_skill("skills/seeded", md, files={"references/deep/a.md": "a"}),
        "seed otherwise": lambda: vfs.seed_skill("skills/seeded", md, files={"references/deep/a.md": "b"}),
        "write to a seed": lambda: (skill / "references/deep/a.md").write_text("mine"),
        "create among seeds": (skill / "references/deep/new").touch,
        "seed a file": lambda: vfs.seed_file("skills/seeded/references/deep/b.md", "b"),
        "take it away": lambda: vfs.seed_remove("skills/seeded/references/deep/b.md"),
    }
    seen = {name: moved(call, *up) for name, call in calls.items()}
    assert seen == {name: [True, True] for name in calls}
    assert moved(lambda: vfs.seed_file("skills/seeded/references/c.md", "c"), skill, *up) == [True, True, True]
    assert moved(lambda: vfs.seed_file("skills/seeded/references/c.md", "c"), skill, *up) == [False, False, False]
