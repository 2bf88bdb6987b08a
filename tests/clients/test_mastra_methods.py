"""Mastra's LocalFilesystem on a mount gives what it gives on tmpfs: every method, option and error class."""

from pathlib import Path
from typing import Any

from tests.clients.frameworks import NodeProject
from tests.support.mounted import MountFactory
from tests.support.servers import RedisServer

PROGRAM = "tests/clients/node/methods.mjs"


def by_step(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what each step gave or threw, by its name."""
    return {outcome.pop("step"): outcome for outcome in outcomes}


def test_every_method_is_as_on_tmpfs(
    node: NodeProject, mount: MountFactory, redis_server: RedisServer, ordinary: Path, tmp_path: Path
) -> None:
    mounted, outside = mount(redis_server.url), tmp_path / "outside"
    outside.mkdir()
    expected = by_step(node.result(PROGRAM, "local", str(ordinary), str(outside)))
    found = by_step(node.result(PROGRAM, "local", str(mounted.path), str(outside)))
    assert found == expected
    assert_they_tell(expected)


def assert_they_tell(expected: dict[str, Any]) -> None:
    """The table would be worth nothing if everything in it failed, or nothing did."""
    assert sum("gave" in outcome for outcome in expected.values()) > 50
    classes = {outcome["threw"]["class"] for outcome in expected.values() if "threw" in outcome}
    assert classes >= {
        "DirectoryNotEmptyError",
        "DirectoryNotFoundError",
        "FileExistsError",
        "FileNotFoundError",
        "IsDirectoryError",
        "NotDirectoryError",
        "PermissionError",
        "StaleFileError",
        "WorkspaceReadOnlyError",
    }
