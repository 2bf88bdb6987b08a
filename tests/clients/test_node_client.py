"""The Node client: Mastra's own filesystem in all that a path can say, and the daemon's in the rest."""

import os
import signal
from pathlib import Path

import pytest

from tests.clients.frameworks import NodeProject
from tests.clients.test_mastra_methods import assert_they_tell, by_step
from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer


@pytest.fixture
def mounted(mount: MountFactory, redis_server: RedisServer) -> Mounted:
    return mount(redis_server.url)


def test_every_method_is_as_mastras_own_on_tmpfs(
    node: NodeProject, mounted: Mounted, ordinary: Path, tmp_path: Path
) -> None:
    """Also those of which the socket does a part: writes that expect a modification time."""
    program, outside = "tests/clients/node/methods.mjs", tmp_path / "outside"
    outside.mkdir()
    expected = by_step(node.result(program, "local", str(ordinary), str(outside)))
    found = node.result(program, "vfsd", str(mounted.path), str(outside), env=mounted.environment)
    assert by_step(found) == expected
    assert_they_tell(expected)


def test_tools_are_as_mastras_own_on_tmpfs(node: NodeProject, mounted: Mounted, ordinary: Path) -> None:
    program = "tests/clients/node/tools.mjs"
    expected = node.result(program, "local", str(ordinary))
    assert node.result(program, "vfsd", str(mounted.path), env=mounted.environment) == expected


def test_of_writers_who_expect_the_same_time_one_wins(node: NodeProject, mounted: Mounted) -> None:
    """Sixteen writers, forty rounds: all read the same time, and all but one are told that they are late."""
    result = node.result("tests/clients/node/contest.mjs", str(mounted.path), env=mounted.environment)
    assert result == {"rounds": 40, "won": [1], "lost": ["StaleFileError"], "kept": True}


def test_the_socket(node: NodeProject, mounted: Mounted) -> None:
    found = node.result("tests/clients/node/socket.mjs", str(mounted.path), env=mounted.environment)
    assert found == {
        "pipelined": list(range(200)),
        "exact": True,
        "large": 3 * 2**20,
        "refused": ["ENOENT", "ENOSYS", "EINVAL"],
        "all": ["a.bin", "big.bin"],
        "hung": "ECONNRESET",
        "anew": ["nothing", "nothing"],
        "flushed": None,
    }


def test_a_daemon_that_is_frozen_killed_and_replaced(node: NodeProject, mounted: Mounted) -> None:
    """One client lives through it; what it asks meanwhile fails with a code that says why."""
    program = "tests/clients/node/outage.mjs"
    with node.conversation(program, str(mounted.path), env=mounted.environment) as client:
        assert client.said() == "connected"
        with mounted.frozen():
            client.say("late")
            assert client.said() == "ETIMEDOUT"
            client.say("lost")
            assert client.said() == "asked"
            os.kill(mounted.pid, signal.SIGKILL)
        assert client.said() == "ECONNRESET"
        mounted.wait()
        client.say("away")
        assert client.said() == "ENOTCONN"
        mounted.start()
        client.say("back")
        assert client.said() == "answered"
        client.end()


def test_without_a_mount_nothing_is_written(node: NodeProject, ordinary: Path) -> None:
    """What landed on the bare disk would be lost to the run."""
    (outcome,) = node.result("tests/clients/node/unmounted.mjs", str(ordinary))
    assert outcome["threw"]["code"] == "ENOTCONN"
    assert outcome["threw"]["message"].startswith("no vfsd mount answers at BASE (")
    assert not list(ordinary.iterdir())


def test_the_end_of_a_scope(node: NodeProject, mounted: Mounted) -> None:
    (mounted.path / "notes.md").write_text("noted\n")
    assert node.result("tests/clients/node/destroy.mjs", str(mounted.path), env=mounted.environment) == ["notes.md"]
    assert mounted.wait() == 0
    assert mounted.scope not in mounted.vfsd("scopes").stdout


def test_seeds(node: NodeProject, mounted: Mounted) -> None:
    """Mastra finds a reference by its path in the skill, and by its bare name on no file system."""
    names = ["SKILL.md", "references/style.md", "scripts/check.sh"]
    found = node.result("tests/clients/node/seeds.mjs", str(mounted.path), env=mounted.environment)
    assert found == {
        "seeded": [True, False, True, False, True, True],
        "before": ["review: Reviews prose"],
        "reloaded": ["review: Reviews maps"],
        "read": ["hello\n", "Prefer short names.\n"],
        "references": ["Prefer short names.\n", None, None, "#!/bin/sh\necho checked\n", ["style.md"]],
        "ran": "checked\n",
        "all": ["notes.md", "readme.md", *(f"skills/review/{name}" for name in names)],
        "broken": "EINVAL",
        "stray": "EINVAL",
    }
