"""``vfsd status``."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.cli import failure, statuses, success
from tests.support.files import NOBODY
from tests.support.mounted import Mounted, MountFactory, run_vfsd
from tests.support.servers import RedisServer, redis_program
from vfsd import __version__


def _cells(mounted: Mounted) -> list[str]:
    """Return the cells of the row of *mounted* in the table of ``vfsd status``."""
    header, *rows = success(mounted.vfsd("status")).splitlines()
    titles = re.split(r"  +", header)
    assert titles == [
        "SCOPE",
        "MOUNTPOINT",
        "STATE",
        "STORE",
        "PID",
        "SINCE",
        "FILES",
        "BYTES",
        "SEEDED",
        "PENDING",
        "LAST ERROR",
    ]
    (row,) = [row for row in rows if str(mounted.path) in row]
    return re.split(r"  +", row)


def test_status_shows_every_field_of_a_mount(mount: MountFactory, redis_server: RedisServer) -> None:
    before_ns = time.time_ns()
    mounted = mount(redis_server.url)
    (mounted.path / "directory").mkdir()
    (mounted.path / "file").write_bytes(b"x" * 3000)
    (mounted.path / "hole").touch()
    os.truncate(mounted.path / "hole", 1 << 30)
    (entry,) = statuses(mounted, mounted.path)
    assert before_ns < entry.pop("since_ns") < time.time_ns()
    assert entry == {
        "scope": mounted.scope,
        "mountpoint": str(mounted.path),
        "state": "mounted",
        "store": redis_server.url,
        "version": __version__,
        "pid": mounted.pid,
        "files": 3,
        "bytes": 3000,
        "pending": 0,
        "read_only": False,
        "last_error": None,
        "seeded": 0,
        "shadowed": 0,
    }
    scope, path, state, store, pid, since, *rest = _cells(mounted)
    assert (scope, path, state) == (mounted.scope, str(mounted.path), "mounted")
    assert (store, pid) == (redis_server.url, str(mounted.pid))
    assert re.fullmatch(r"\d+ (s|min)", since)
    assert rest == ["3", "2.9 KiB", "0", "0", "-"]


def test_status_lists_several_mounts_and_no_ended_one(mount: MountFactory, redis_server: RedisServer) -> None:
    first, second = mount(redis_server.url), mount(redis_server.url)
    assert [entry["scope"] for entry in statuses(first, first.path, second.path)] == [first.scope, second.scope]
    assert first.stop() == 0
    assert [entry["scope"] for entry in statuses(second, first.path, second.path)] == [second.scope]


def test_status_shows_a_mount_whose_daemon_is_dead(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    mounted.kill()
    (entry,) = statuses(mounted, mounted.path)
    assert (entry["state"], entry["pid"]) == ("dead", mounted.pid)
    assert _cells(mounted)[2] == "dead"
    assert _cells(mounted)[-1] == f"dead: vfsd umount --lazy {mounted.path}"


def test_status_shows_a_mount_that_does_not_answer(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    with mounted.frozen():
        (entry,) = statuses(mounted, mounted.path)
        cells = _cells(mounted)
    assert entry["state"] == "silent"
    assert (cells[2], cells[-1]) == ("silent", "-")


def test_status_of_some_mounts(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = mount(redis_server.url), mount(redis_server.url)
    link = tmp_path / "link"
    link.symlink_to(first.path)
    monkeypatch.chdir(tmp_path)
    for name in (str(first.path), os.path.relpath(first.path), str(link)):
        assert [entry["scope"] for entry in json.loads(success(first.vfsd("status", "--json", name)))] == [first.scope]
    both = success(first.vfsd("status", str(first.path), str(second.path))).splitlines()[1:]
    assert [line.split()[0] for line in both] == [first.scope, second.scope]


def test_status_of_what_is_no_mount(mount: MountFactory, redis_server: RedisServer, tmp_path: Path) -> None:
    mounted = mount(redis_server.url)
    assert (
        failure(mounted.vfsd("status", str(tmp_path)), 12)
        == f"{tmp_path}: no vfsd mount there; vfsd status lists the mounts"
    )
    below = mounted.path / "below"
    mixed = mounted.vfsd("status", str(below), str(mounted.path), "/proc")
    assert mixed.returncode == 12
    assert [line.split()[0] for line in mixed.stdout.splitlines()] == ["SCOPE", mounted.scope]
    lines = mixed.stderr.splitlines()
    assert lines[0] == f"vfsd: {below}: no vfsd mount there; it lies in the mount at {mounted.path}: name that"
    assert lines[1].startswith("vfsd: /proc: no vfsd mount there, but ")


def test_status_of_a_frozen_mount_does_not_wait_for_it(mount: MountFactory, redis_server: RedisServer) -> None:
    """A path below it is not looked up there either: the command would wait as long as the mount is frozen."""
    mounted = mount(redis_server.url)
    with mounted.frozen():
        (entry,) = json.loads(success(mounted.vfsd("status", "--json", str(mounted.path))))
        assert entry["state"] == "silent"
        assert "it lies in the mount" in failure(mounted.vfsd("status", f"{mounted.path}/d/file"), 12)


def test_a_mount_without_a_registration_is_no_error(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path
) -> None:
    mounted = mount(redis_server.url)
    elsewhere = {**mounted.environment, "VFSD_RUNTIME_DIR": str(tmp_path / "elsewhere")}
    header, row = success(run_vfsd("status", str(mounted.path), env=elsewhere)).splitlines()
    cells = dict(zip(re.split(r"  +", header), re.split(r"  +", row), strict=True))
    assert (cells["STATE"], cells["PID"], cells["LAST ERROR"]) == ("unregistered", "-", "-")


def test_a_mount_of_another_user_is_called_that(mount: MountFactory, redis_server: RedisServer) -> None:
    """Nobody's status command sees the mount in the table, and may not read where it is registered."""
    mounted = mount(redis_server.url)
    command = ["setpriv", "--reuid", str(NOBODY), "--clear-groups", sys.executable, "-m", "vfsd", "status"]
    environment = {**mounted.environment, "VFSD_RUNTIME_DIR": "/nonexistent"}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    (row,) = [line for line in printed.splitlines() if f" {mounted.path} " in line]
    assert re.search(r"  other user's  -  .*  -$", row)


def test_status_shows_the_last_error_of_the_store(mount: MountFactory) -> None:
    with RedisServer(redis_program()) as server:
        mounted = mount(server.url, "--store-timeout", "0.3")
        mounted.expected += ["lost the store", "cannot reach the store", "could not release"]
        server.kill()
        with pytest.raises(OSError, match="Input/output error"):
            (mounted.path / "directory").mkdir()
        (entry,) = statuses(mounted, mounted.path)
        assert "the store unix://" in entry["last_error"]["what"]
        assert entry["last_error"]["when_ns"] < time.time_ns()
        assert re.match(r"\d+ s ago: .*the store unix://", _cells(mounted)[-1])
        server.start()
        assert mounted.stop() == 0


def test_status_with_no_mounts() -> None:
    """The host may have other mounts, so the command runs in a mount namespace without any."""
    script = 'while umount -l -t fuse.vfsd -a; mount -t fuse.vfsd | grep -q .; do :; done; exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-m", "vfsd", "status"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == "no vfsd mounts on this host\n"
