"""Scopes with damaged records: the error names the record and the remedy, and a part is mounted only with --salvage."""

import os
from collections.abc import Callable
from errno import EROFS
from pathlib import Path

import pytest
import redis

from tests.support.cli import detached, failure, mounts_at, success
from tests.support.files import refused
from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer


@pytest.fixture
def mounted(mount: MountFactory, redis_server: RedisServer) -> Mounted:
    """Return an unmounted scope that has two files in a directory."""
    mounted = mount(redis_server.url)
    (mounted.path / "directory").mkdir()
    (mounted.path / "directory" / "one").write_bytes(b"content of one")
    (mounted.path / "directory" / "two").write_bytes(b"content of two" * 5000)
    assert mounted.stop() == 0
    mounted.expected.append(" ERROR vfsd.daemon.process: .*scope ")
    return mounted


def _refusal(mounted: Mounted, status: int) -> str:
    """Return the error line of a mount that must fail with *status*."""
    with detached(mounted) as daemon:
        result = daemon.mount()
        assert mounts_at(mounted.path) == []
        result.stderr = result.stderr.splitlines()[-1]
        return failure(result, status)


def test_a_newer_format_is_refused(mounted: Mounted, redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        client.hset(f"vfsd:{{{mounted.scope}}}:scope", "format", 99)
        line = _refusal(mounted, 8)
        assert line.startswith(f"scope {mounted.scope} is stored in format 99, and this vfsd reads up to ")
        assert line.endswith("upgrade vfsd")
        assert client.hget(f"vfsd:{{{mounted.scope}}}:scope", "format") == b"99"


Damage = Callable[["redis.Redis", str], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "a truncated inode": (
        lambda client, prefix: client.hset(f"{prefix}:inodes", "3", b"\x01\x02"),
        "vfsd:{SCOPE}:inodes field b'3'",
    ),
    "a missing inode": (lambda client, prefix: client.hdel(f"{prefix}:inodes", "3"), "there is no inode 3"),
    "a missing entry": (
        lambda client, prefix: client.hdel(f"{prefix}:entries", "2/one"),
        "inode 3: 1 links recorded, 0 found",
    ),
    "an invalid entry": (
        lambda client, prefix: client.hset(f"{prefix}:entries", "2/one", "nonsense"),
        "vfsd:{SCOPE}:entries field b'2/one'",
    ),
    "a too long chunk": (
        lambda client, prefix: client.hset(f"{prefix}:data:3", "0", b"x" * 20_000),
        "vfsd:{SCOPE}:data:3 field b'0'",
    ),
}


@pytest.mark.parametrize(("damage", "named"), DAMAGES.values(), ids=DAMAGES.keys())
def test_the_error_names_a_damaged_record_and_the_rest_can_be_salvaged(
    mount: MountFactory, mounted: Mounted, redis_server: RedisServer, damage: Damage, named: str
) -> None:
    with redis_server.client() as client:
        damage(client, f"vfsd:{{{mounted.scope}}}")
    line = _refusal(mounted, 8)
    assert line.startswith(f"scope {mounted.scope} has ")
    assert named.replace("SCOPE", mounted.scope) in line
    assert line.endswith("restore them from a backup, or mount with --salvage to read what is left")

    salvaged = mount(redis_server.url, "--salvage", scope=mounted.scope)
    salvaged.expected.append(f"scope {mounted.scope}, left out: ")
    assert named.replace("SCOPE", mounted.scope) in salvaged.log.read_text()
    assert (salvaged.path / "directory" / "two").read_bytes() == b"content of two" * 5000
    with refused(EROFS):
        (salvaged.path / "new").touch()
    assert salvaged.stop() == 0
    assert _refusal(mounted, 8) == line


def test_the_error_names_an_invalid_header(mounted: Mounted, redis_server: RedisServer) -> None:
    key = f"vfsd:{{{mounted.scope}}}:scope"
    with redis_server.client() as client:
        client.hset(key, "next", "nonsense")
    line = _refusal(mounted, 8)
    assert line.startswith(f"the header {key} of scope {mounted.scope} is not readable")
    assert f"'vfsd destroy {mounted.scope}'" in line
    success(mounted.vfsd("destroy", mounted.scope, "--yes"))
    mounted.start()
    assert os.listdir(mounted.path) == []


def test_salvage_of_an_undamaged_scope_shows_everything(
    mount: MountFactory, mounted: Mounted, redis_server: RedisServer
) -> None:
    salvaged = mount(redis_server.url, "--salvage", scope=mounted.scope)
    assert {path.name for path in (salvaged.path / "directory").iterdir()} == {"one", "two"}
    assert Path(salvaged.path / "directory" / "one").read_bytes() == b"content of one"
