"""A command that vfsd suggests can be pasted into a shell, whatever the path in it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.mount.other_process import other_process
from tests.support.cli import failure, mounts_at, success
from tests.support.mounted import Mounted, MountFactory
from tests.support.names import ODD
from tests.support.namespaces import kept_namespace
from tests.support.servers import RedisServer
from vfsd.printable import printable


def _pasted(mounted: Mounted, command: str) -> subprocess.CompletedProcess[str]:
    """Run *command* as a user of bash would."""
    vfsd = f'vfsd() {{ {sys.executable} -m vfsd "$@"; }}'
    return subprocess.run(
        ["bash", "-c", f"{vfsd}; {command}"], env=mounted.environment, capture_output=True, text=True, check=False
    )


@contextmanager
def _mounted_at(mounted: Mounted, name: bytes) -> Iterator[Mounted]:
    """Mount *mounted*, which is not started, at a mountpoint called *name*."""
    mounted.path = mounted.path.parent / os.fsdecode(name)
    mounted.start()
    yield mounted
    assert mounts_at(mounted.path) == []


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_the_command_that_detaches_a_busy_mount(mount: MountFactory, redis_server: RedisServer, name: bytes) -> None:
    with _mounted_at(mount(redis_server.url, start=False), name) as mounted:
        with other_process("sit_in", mounted.path) as holder:
            holder.read_line()
            line = failure(mounted.vfsd("umount", str(mounted.path)), 11)
            success(_pasted(mounted, line[line.index("vfsd umount --lazy ") :]))
            assert mounts_at(mounted.path) == []
        assert mounted.wait() == 0


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_the_commands_that_clear_a_mountpoint(mount: MountFactory, redis_server: RedisServer, name: bytes) -> None:
    """Of a dead mount in the way of another one, and of a living one."""
    with _mounted_at(mount(redis_server.url, start=False), name) as mounted:
        line = failure(mounted.vfsd("mount", "--foreground", str(mounted.path), "--scope", "other"), 9)
        success(_pasted(mounted, line[line.index("vfsd umount ") :]))
        assert mounted.wait() == 0
        mounted.start()
        mounted.kill()
        command = re.search(r"dead: (vfsd umount --lazy .*)\n", success(mounted.vfsd("status", str(mounted.path))))
        assert command is not None
        success(_pasted(mounted, command[1]))


def test_the_command_that_unmounts_another_mountpoint(mount: MountFactory, redis_server: RedisServer) -> None:
    """As ``mount --bind`` makes it, in the same namespace."""
    with _mounted_at(mount(redis_server.url, start=False), b"a \x1c") as mounted:
        bound = mounted.path.parent / os.fsdecode(b"bound \xff")
        bound.mkdir()
        subprocess.run(["mount", "--bind", mounted.path, bound], check=True)
        try:
            line = failure(mounted.vfsd("umount", "--timeout", "1", str(mounted.path)), 11)
            assert f"it is also mounted at {printable(str(bound))}; unmount that too: " in line
            success(_pasted(mounted, line[line.index("vfsd umount ") :]))
            assert mounted.wait() == 0
        finally:
            subprocess.run(["umount", "-l", bound], check=False, capture_output=True)


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_the_command_that_unmounts_in_a_kept_namespace(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path, name: bytes
) -> None:
    """The file that keeps it, and the mountpoint there, may both have any name."""
    with (
        _mounted_at(mount(redis_server.url, start=False), name) as mounted,
        kept_namespace(mounted, tmp_path / "kept" / os.fsdecode(name)),
    ):
        success(mounted.vfsd("umount", "--lazy", str(mounted.path)))
        line = failure(mounted.vfsd("umount", str(mounted.path)), 11)
        command = re.search(r"\((nsenter --mount=.*)\), or let", line)
        assert command is not None
        success(_pasted(mounted, command[1]))
        assert mounted.wait() == 0
