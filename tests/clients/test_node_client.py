"""The Node client: it behaves like Mastra's own filesystem, and uses the daemon for what a path cannot express."""

import os
import signal
from pathlib import Path

import pytest

from tests.clients.frameworks import NodeProject
from tests.clients.test_mastra_methods import assert_results_differ, by_step
from tests.support.files import NOBODY
from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer


@pytest.fixture
def mounted(mount: MountFactory, redis_server: RedisServer) -> Mounted:
    return mount(redis_server.url)


def test_every_method_has_the_results_of_mastra_on_tmpfs(
    node: NodeProject, mounted: Mounted, tmpfs: Path, tmp_path: Path
) -> None:
    """This includes writes that expect a modification time, which use the socket."""
    program, outside = "tests/clients/node/methods.mjs", tmp_path / "outside"
    outside.mkdir()
    expected = by_step(node.result(program, "local", str(tmpfs), str(outside)))
    found = node.result(program, "vfsd", str(mounted.path), str(outside), env=mounted.environment)
    assert by_step(found) == expected
    assert_results_differ(expected)


def test_tools_have_the_results_of_mastra_on_tmpfs(node: NodeProject, mounted: Mounted, tmpfs: Path) -> None:
    program = "tests/clients/node/tools.mjs"
    expected = node.result(program, "local", str(tmpfs))
    assert node.result(program, "vfsd", str(mounted.path), env=mounted.environment) == expected


def test_of_two_writers_within_a_millisecond_the_one_who_saw_the_old_file_is_refused(
    node: NodeProject, mount: MountFactory, redis_server: RedisServer
) -> None:
    mounted = mount(redis_server.url)
    result = node.result("tests/clients/node/exact.mjs", str(mounted.path), env=mounted.environment)
    assert result == {"sameMillisecond": True, "old": "StaleFileError", "present": "written"}


def test_only_one_of_the_writers_that_expect_the_same_time_succeeds(node: NodeProject, mounted: Mounted) -> None:
    """Sixteen writers read the same time in each of forty rounds. All except one get StaleFileError."""
    result = node.result("tests/clients/node/contest.mjs", str(mounted.path), env=mounted.environment)
    assert result == {"rounds": 40, "winnerCounts": [1], "errors": ["StaleFileError"], "contentMatches": True}


def test_the_socket(node: NodeProject, mounted: Mounted) -> None:
    found = node.result("tests/clients/node/socket.mjs", str(mounted.path), env=mounted.environment)
    assert found == {
        "pipelined": list(range(200)),
        "exact": True,
        "large": 3 * 2**20,
        "refused": ["ENOENT", "ENOSYS", "EINVAL"],
        "unread": ["ENOSYS", "EMSGSIZE", "no error"],
        "all": ["a.bin", "big.bin"],
        "closed": "ECONNRESET",
        "reconnected": ["no error", "no error"],
        "flushed": None,
    }


def test_a_client_survives_a_daemon_that_is_frozen_killed_and_restarted(node: NodeProject, mounted: Mounted) -> None:
    """One client is used all the time. Its requests fail meanwhile, with a code that names the reason."""
    program = "tests/clients/node/outage.mjs"
    with node.conversation(program, str(mounted.path), env=mounted.environment) as client:
        assert client.receive() == "connected"
        with mounted.frozen():
            client.send("late")
            assert client.receive() == "ETIMEDOUT"
            client.send("lost")
            assert client.receive() == "asked"
            os.kill(mounted.pid, signal.SIGKILL)
        assert client.receive() == "ECONNRESET"
        mounted.wait()
        client.send("away")
        assert client.receive() == "ENOTCONN"
        mounted.start()
        client.send("back")
        assert client.receive() == "answered"
        client.end()


def test_without_a_mount_nothing_is_written(node: NodeProject, tmpfs: Path) -> None:
    """A write to the directory below the mountpoint would be lost."""
    (outcome,) = node.result("tests/clients/node/unmounted.mjs", str(tmpfs))
    assert outcome["threw"]["code"] == "ENOTCONN"
    assert outcome["threw"]["message"].startswith("no vfsd mount answers at BASE (")
    assert not list(tmpfs.iterdir())


@pytest.mark.parametrize(("owner", "mode"), [(NOBODY, 0o700), (0, 0o777), (0, 0o770)])
def test_a_directory_that_a_stranger_may_have_made_is_not_used(
    node: NodeProject, tmpfs: Path, tmp_path: Path, owner: int, mode: int
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    run.chmod(mode)
    os.chown(run, owner, owner)
    (tmp_path / "link").symlink_to(run)
    for runtime in (run, tmp_path / "link"):
        (outcome,) = node.result(
            "tests/clients/node/unmounted.mjs", str(tmpfs), env={**os.environ, "VFSD_RUNTIME_DIR": str(runtime)}
        )
        assert outcome["threw"]["code"] == "EPERM"
        assert outcome["threw"]["message"].endswith("remove it, or set VFSD_RUNTIME_DIR")
        run.chmod(0o700)
        os.chown(run, 0, 0)


def test_destroy_persisted_drops_the_scope(node: NodeProject, mounted: Mounted) -> None:
    (mounted.path / "notes.md").write_text("noted\n")
    assert node.result("tests/clients/node/destroy.mjs", str(mounted.path), env=mounted.environment) == ["notes.md"]
    assert mounted.wait() == 0
    assert mounted.scope not in mounted.vfsd("scopes").stdout


def test_seeds(node: NodeProject, mounted: Mounted) -> None:
    """Mastra finds a reference by its path in the skill. It finds it by the bare name on no file system."""
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
