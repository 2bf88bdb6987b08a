"""Mastra's workspace tools on a mount: as on tmpfs, and with a guard that no haste gets past."""

from pathlib import Path

from tests.clients.frameworks import NodeProject
from tests.support.mounted import MountFactory
from tests.support.servers import RedisServer

TIMES = 300


def test_tools_are_as_on_tmpfs(
    node: NodeProject, mount: MountFactory, redis_server: RedisServer, ordinary: Path
) -> None:
    program = "tests/clients/node/tools.mjs"
    expected = node.result(program, "local", str(ordinary))
    assert node.result(program, "local", str(mount(redis_server.url).path)) == expected
    refused = [outcome["step"] for outcome in expected if "threw" in outcome]
    assert {"write it unread", "edit it unread", "edit it again unread", "write what has changed"} <= set(refused)


def test_a_file_changed_since_it_was_read_is_not_overwritten(
    node: NodeProject, mount: MountFactory, redis_server: RedisServer
) -> None:
    """Tools compare the times that Node shows, which are milliseconds: each change must show another one."""
    counted = node.result("tests/clients/node/guard.mjs", "local", str(mount(redis_server.url).path), str(TIMES))
    assert counted == {"refused": TIMES, "lost": 0}
