"""Mastra's workspace tools on a mount: the results of tmpfs, and no overwrite of a file that changed after the read."""

from pathlib import Path

from tests.clients.frameworks import NodeProject
from tests.support.mounted import MountFactory
from tests.support.servers import RedisServer

TIMES = 300


def test_tools_have_the_results_of_tmpfs(
    node: NodeProject, mount: MountFactory, redis_server: RedisServer, tmpfs: Path
) -> None:
    program = "tests/clients/node/tools.mjs"
    expected = node.result(program, "local", str(tmpfs))
    assert node.result(program, "local", str(mount(redis_server.url).path)) == expected
    refused = [outcome["step"] for outcome in expected if "threw" in outcome]
    assert {"write it unread", "edit it unread", "edit it again unread", "write the changed file"} <= set(refused)


def test_a_file_changed_since_it_was_read_is_not_overwritten(
    node: NodeProject, mount: MountFactory, redis_server: RedisServer
) -> None:
    """Tools compare the times of Node, which are in milliseconds. So each change must change the millisecond."""
    counted = node.result("tests/clients/node/guard.mjs", "local", str(mount(redis_server.url).path), str(TIMES))
    assert counted == {"refused": TIMES, "lost": 0}
