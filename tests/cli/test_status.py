"""``vfsd status``, ``vfsd scopes`` and ``vfsd destroy``."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis

from tests.support.cli import detached, failure, statuses, success
from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer, redis_program
from vfsd import __version__


def _cells(mounted: Mounted) -> list[str]:
    """Return the cells of the row of *mounted* in the table of ``vfsd status``."""
    header, *rows = success(mounted.vfsd("status")).splitlines()
    titles = re.split(r"  +", header)
    assert titles == [
        "SCOPE",
        "MOUNTPOINT",
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
        "files": 4,
        "bytes": 3000,
        "pending": 0,
        "read_only": False,
        "last_error": None,
        "seeded": 0,
        "shadowed": 0,
    }
    scope, path, store, pid, since, *rest = _cells(mounted)
    assert (scope, path, store, pid) == (mounted.scope, str(mounted.path), redis_server.url, str(mounted.pid))
    assert re.fullmatch(r"\d+ (s|min)", since)
    assert rest == ["4", "2.9 KiB", "0", "0", "-"]


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
    assert _cells(mounted)[-1] == f"dead: vfsd umount --lazy {mounted.path}"


def test_status_shows_a_mount_that_does_not_answer(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    with mounted.frozen():
        (entry,) = statuses(mounted, mounted.path)
    assert entry["state"] == "silent"


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


def _scopes(mounted: Mounted) -> dict[str, dict[str, Any]]:
    entries = json.loads(success(mounted.vfsd("scopes", "--json")))
    return {entry["scope"]: entry for entry in entries}


def test_scopes_lists_the_scopes_of_a_store(mount: MountFactory, redis_server: RedisServer) -> None:
    before_ns = time.time_ns()
    mounted = mount(redis_server.url)
    (mounted.path / "file").touch()
    entry = _scopes(mounted)[mounted.scope]
    assert before_ns < entry.pop("created_ns") < time.time_ns()
    owner = {"host": os.uname().nodename, "pid": mounted.pid, "mountpoint": str(mounted.path)}
    assert entry == {"scope": mounted.scope, "files": 2, "owner": owner}
    lines = success(mounted.vfsd("scopes")).splitlines()
    (line,) = [line for line in lines if line.startswith(f"{mounted.scope} ")]
    assert re.search(rf"  2 files  made [\d-]+ [\d:]+Z  mounted: host \S+, pid {mounted.pid}, at {mounted.path}", line)
    assert mounted.stop() == 0
    assert _scopes(mounted)[mounted.scope]["owner"] is None
    assert f"{mounted.scope}  2 files" in success(mounted.vfsd("scopes"))


def test_destroy_is_refused_while_mounted_and_then_deletes_everything(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "file").write_bytes(b"content")
    line = failure(mounted.vfsd("destroy", mounted.scope, "--yes"), 7)
    assert f"pid {mounted.pid}, at {mounted.path}" in line
    assert (mounted.path / "file").read_bytes() == b"content"
    assert mounted.stop() == 0
    assert success(mounted.vfsd("destroy", mounted.scope, "--yes")) == f"destroyed scope {mounted.scope}\n"
    assert mounted.scope not in _scopes(mounted)
    with redis_server.client() as client:
        assert client.keys(f"*{mounted.scope}*") == []
    assert failure(mounted.vfsd("destroy", mounted.scope, "--yes"), 6).startswith("there is no scope")
    mounted.start()
    assert os.listdir(mounted.path) == []


def test_destroy_asks_first(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    assert mounted.stop() == 0
    result = mounted.vfsd("destroy", mounted.scope)
    assert result.returncode == 1
    assert f"Delete all files of scope {mounted.scope} for good?" in result.stdout
    assert mounted.scope in _scopes(mounted)


DAMAGES: dict[str, Callable[["redis.Redis", str], object]] = {
    "a header that is no hash": lambda client, key: (client.delete(key), client.set(key, "text")),
    "a field that is no number": lambda client, key: client.hset(key, "next", "nonsense"),
    "a time beyond the calendar": lambda client, key: client.hset(key, "created", str(2**64)),
    "limits that are no numbers": lambda client, key: client.hset(key, "limits", '{"max_bytes": "\x1b[2J"}'),
    "an owner that is no owner": lambda client, key: (
        client.hset(key, "owner", "\x1b[2J"),
        client.set(key.replace(":scope", ":lease"), "token"),
    ),
    "a lost field": lambda client, key: client.hdel(key, "format"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_scopes_lists_the_others_beside_a_damaged_one(
    mount: MountFactory, damage: Callable[["redis.Redis", str], object]
) -> None:
    with RedisServer(redis_program()) as server, server.client() as client:
        bad, good = mount(server.url), mount(server.url)
        assert (bad.stop(), good.stop()) == (0, 0)
        damage(client, f"vfsd:{{{bad.scope}}}:scope")
        listed = good.vfsd("scopes")
        assert listed.returncode == 8
        lines = {line.partition(" ")[0]: line for line in listed.stdout.splitlines()}
        assert "damaged: " not in lines[good.scope]
        assert f"damaged: vfsd:{{{bad.scope}}}:scope" in lines[bad.scope]
        assert listed.stderr.startswith(f"vfsd: 1 of 2 scopes are damaged: {bad.scope};")
        assert all(line.isprintable() for line in (*lines.values(), *listed.stderr.splitlines()))
        as_json = good.vfsd("scopes", "--json")
        assert as_json.returncode == 8
        assert {entry["scope"] for entry in json.loads(as_json.stdout) if "damage" in entry} == {bad.scope}


def test_scopes_shows_a_name_and_an_owner_that_would_control_the_terminal_as_escapes(mount: MountFactory) -> None:
    with RedisServer(redis_program()) as server, server.client() as client:
        mounted = mount(server.url)
        mounted.expected.append(" ERROR vfsd.daemon.process: scope .* is mounted: ")
        record = json.loads(client.hget(f"vfsd:{{{mounted.scope}}}:scope", "owner") or b"")
        record |= {"host": "host\x1b]0;owned\x07", "host_id": "elsewhere", "mountpoint": "/mnt\n\u202e"}
        assert mounted.stop() == 0
        client.hset(f"vfsd:{{{mounted.scope}}}:scope", "owner", json.dumps(record))
        client.set(f"vfsd:{{{mounted.scope}}}:lease", "token")
        client.sadd("vfsd:scopes", b"\x1b[2J\xff")
        listed = mounted.vfsd("scopes")
        assert listed.returncode == 8
        assert r"host host\x1b]0;owned\x07" in listed.stdout
        assert r"at /mnt\x0a\xe2\x80\xae" in listed.stdout
        assert r"\x1b[2J\xff" in listed.stdout
        assert all(line.isprintable() for line in (*listed.stdout.split("\n"), *listed.stderr.split("\n")))
        assert len(listed.stdout.splitlines()) == 2
        with detached(mounted) as second:
            mounting = second.mount()
        assert mounting.returncode == 7
        refusal = mounting.stderr.splitlines()[-1]
        assert r"host host\x1b]0;owned\x07" in refusal
        assert refusal.isprintable()
