"""An empty argument, such as a shell variable that is not set: it never means the current directory, or everything."""

import os
from pathlib import Path

import pytest

from tests.support.cli import failure, success
from tests.support.mounted import MountFactory, run_vfsd
from tests.support.servers import RedisServer
from vfsd import connect
from vfsd.errors import UsageError

COMMANDS = {
    "mount": ["mount", "", "--scope", "s"],
    "umount": ["umount", ""],
    "status": ["status", ""],
    "skill add": ["skill", "add", "", "/"],
    "skill list": ["skill", "list", ""],
    "skill remove": ["skill", "remove", "", "review"],
    "seed": ["seed", "", "/a", "--from", "-"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_mountpoint(command: str, tmp_path: Path) -> None:
    skill = tmp_path / "review"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: review\ndescription: Reviews.\n---\n")
    arguments = [str(skill) if word == "/" else word for word in COMMANDS[command]]
    env = {**os.environ, "VFSD_RUNTIME_DIR": str(tmp_path), "VFSD_STORE": f"sqlite:{tmp_path}/s.db"}
    assert failure(run_vfsd(*arguments, env=env, text=""), 2) == "MOUNTPOINT is empty: name the directory of the mount"


def test_the_client_and_an_empty_mountpoint() -> None:
    with pytest.raises(UsageError, match="MOUNTPOINT is empty"):
        connect("")


def test_an_empty_log_file(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    result = mounted.vfsd("mount", str(mounted.path), "--scope", mounted.scope, "--log-file", "")
    assert failure(result, 2).startswith("--log-file is empty: ")


def test_an_empty_path_of_a_seed(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    success(mounted.vfsd("seed", str(mounted.path), "/file", "--from", "-", text="content"))
    assert failure(mounted.vfsd("skill", "remove", str(mounted.path), ""), 2).startswith("NAME|PATH is empty: ")
    assert failure(mounted.vfsd("seed", str(mounted.path), "", "--from", os.devnull), 2).startswith("DEST is empty: ")
    assert (mounted.path / "file").read_bytes() == b"content"
