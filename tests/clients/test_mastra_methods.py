"""Mastra's LocalFilesystem has the same results on a mount as on tmpfs: every method, option and error class."""

from pathlib import Path
from typing import Any

from tests.clients.frameworks import NodeProject
from tests.support.mounted import MountFactory
from tests.support.servers import RedisServer

PROGRAM = "tests/clients/node/methods.mjs"


def by_step(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the result or the error of each step, by its name."""
    return {outcome.pop("step"): outcome for outcome in outcomes}


def test_every_method_has_the_results_of_tmpfs(
    node: NodeProject, mount: MountFactory, redis_server: RedisServer, tmpfs: Path, tmp_path: Path
) -> None:
    mounted, outside = mount(redis_server.url), tmp_path / "outside"
    outside.mkdir()
    expected = by_step(node.result(PROGRAM, "local", str(tmpfs), str(outside)))
    found = by_step(node.result(PROGRAM, "local", str(mounted.path), str(outside)))
    assert found == expected
    assert_results_differ(expected)


def assert_results_differ(expected: dict[str, Any]) -> None:
    """Check that many steps succeed and many different errors occur. Otherwise the comparison would prove little."""
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
