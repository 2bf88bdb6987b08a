"""``vfsd scopes``."""

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.cli import detached, failure, success
from tests.support.mounted import Mounted, MountFactory, run_vfsd
from tests.support.servers import RedisServer, ServerOptions, redis_program


def _scopes(mounted: Mounted) -> dict[str, dict[str, Any]]:
    entries = json.loads(success(mounted.vfsd("scopes", "--json")))
    return {entry["scope"]: entry for entry in entries}


def _cells(mounted: Mounted) -> dict[str, str]:
    """Return the row of *mounted* in the table of ``vfsd scopes``, by title."""
    header, *rows = success(mounted.vfsd("scopes")).splitlines()
    titles = re.split(r"  +", header)
    assert titles == ["SCOPE", "FILES", "BYTES", "CREATED", "CHANGED", "MOUNTED", "DAMAGE"]
    (row,) = [row for row in rows if row.startswith(f"{mounted.scope} ")]
    return dict(zip(titles, re.split(r"  +", row), strict=True))


def test_scopes_lists_the_scopes_of_a_store(mount: MountFactory, redis_server: RedisServer) -> None:
    before_ns = time.time_ns()
    mounted = mount(redis_server.url)
    (mounted.path / "directory").mkdir()
    (mounted.path / "file").write_bytes(b"123")
    (mounted.path / "hole").touch()
    os.truncate(mounted.path / "hole", 1 << 20)
    entry = _scopes(mounted)[mounted.scope]
    assert before_ns < entry.pop("created_ns") < time.time_ns()
    owner = {"host": os.uname().nodename, "pid": mounted.pid, "mountpoint": str(mounted.path)}
    assert entry.pop("changed_ns") == (mounted.path / "hole").stat().st_ctime_ns
    assert entry == {"scope": mounted.scope, "files": 3, "bytes": 3 + (1 << 20), "owner": owner}
    cells = _cells(mounted)
    assert (cells["FILES"], cells["BYTES"], cells["MOUNTED"], cells["DAMAGE"]) == (
        "3",
        "1.0 MiB",
        str(mounted.path),
        "-",
    )
    assert all(re.fullmatch(r"[\d-]{10} [\d:]{8}Z", cells[title]) for title in ("CREATED", "CHANGED"))
    assert mounted.stop() == 0
    assert _scopes(mounted)[mounted.scope]["owner"] is None
    assert _cells(mounted)["MOUNTED"] == "-"


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
        assert lines[good.scope].endswith("  -")
        assert f"  vfsd:{{{bad.scope}}}:scope" in lines[bad.scope]
        assert listed.stderr.startswith(f"vfsd: 1 of 2 scopes is damaged: {bad.scope};")
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
        assert r"host\x1b]0;owned\x07:/mnt\x0a\xe2\x80\xae" in listed.stdout
        assert r"\x1b[2J\xff" in listed.stdout
        assert all(line.isprintable() for line in (*listed.stdout.split("\n"), *listed.stderr.split("\n")))
        assert len(listed.stdout.splitlines()) == 3
        with detached(mounted) as second:
            mounting = second.mount()
        assert mounting.returncode == 7
        refusal = mounting.stderr.splitlines()[-1]
        assert r"host host\x1b]0;owned\x07" in refusal
        assert refusal.isprintable()


def test_a_daemon_that_was_killed_has_no_scope_mounted(mount: MountFactory, redis_server: RedisServer) -> None:
    """Its lease lasts for some seconds more, but its process tells."""
    mounted = mount(redis_server.url)
    mounted.kill()
    assert _cells(mounted)["MOUNTED"] == "-"


def test_an_empty_store_says_so_without_its_password() -> None:
    with RedisServer(redis_program(), ServerOptions(password="secret")) as server:
        printed = success(run_vfsd("scopes", "--store", server.url, env={**os.environ}))
        assert printed == f"no scopes in unix://:***@{server.socket}?db=0\n"
        assert success(run_vfsd("scopes", "--json", "--store", server.url, env={**os.environ})) == "[]\n"


def test_a_store_that_does_not_exist_is_not_created(tmp_path: Path) -> None:
    file = tmp_path / "scopes.db"
    for command in (("scopes",), ("scopes", "--json"), ("destroy", "scope"), ("destroy", "scope", "--yes")):
        line = failure(run_vfsd(*command, "--store", f"sqlite:{file}", env={**os.environ}), 3)
        assert line == f"store sqlite:{file}: there is no such file; vfsd mount creates it"
        line = failure(run_vfsd(*command, "--store", f"sqlite:{tmp_path}/none/scopes.db", env={**os.environ}), 3)
        assert line == f"store sqlite:{tmp_path}/none/scopes.db: there is no directory {tmp_path}/none; create it first"
    assert list(tmp_path.iterdir()) == []
