"""Scopes with damaged records: the error names the record and the remedy, and a part is mounted only with --salvage."""

import os
import stat
from collections.abc import Callable, Iterator
from errno import EROFS
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.cli import detached, failure, mounts_at, success
from tests.support.files import refused
from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer, redis_program
from vfsd import connect
from vfsd.store.records import pack_inode
from vfsd.tree.change import Attributes


@pytest.fixture(scope="module")
def redis_server() -> Iterator[RedisServer]:
    """Yield a server for the tests here. They leave damaged scopes behind, which others would find in a list."""
    with RedisServer(redis_program()) as server:
        yield server


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


def _record(**fields: Any) -> bytes:
    return pack_inode(Attributes(stat.S_IFREG | 0o644, 1, 0, 0, 0, 0, 1, 1, 1)._replace(**fields))


def _make_a_circle(client: "redis.Redis", prefix: str) -> None:
    """Store two directories that contain each other, and a skill and a second name of the file 3 in them."""
    directory = _record(mode=stat.S_IFDIR | 0o755, nlink=3)
    client.hset(f"{prefix}:inodes", mapping={"8": directory, "9": directory, "3": _record(nlink=2, size=14)})
    client.hset(f"{prefix}:entries", mapping={"8/nine": "9 3", "9/eight": "8 3", "9/SKILL.md": "3 4"})


Damage = Callable[["redis.Redis", str], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "a truncated inode": (
        lambda client, prefix: client.hset(f"{prefix}:inodes", "3", b"\x01\x02"),
        "vfsd:{SCOPE}:inodes field b'3'",
    ),
    "a missing inode": (lambda client, prefix: client.hdel(f"{prefix}:inodes", "3"), "there is no inode 3"),
    "a missing entry": (
        lambda client, prefix: client.hdel(f"{prefix}:entries", "2/one"),
        "vfsd:{SCOPE}:inodes field b'3': 1 links recorded, 0 found",
    ),
    "an invalid entry": (
        lambda client, prefix: client.hset(f"{prefix}:entries", "2/one", "nonsense"),
        "vfsd:{SCOPE}:entries field b'2/one'",
    ),
    "an entry that names the root": (
        lambda client, prefix: client.hset(f"{prefix}:entries", "2/up", "1 9"),
        "vfsd:{SCOPE}:entries field b'2/up': it names the root directory",
    ),
    "a circle of directories": (
        _make_a_circle,
        "vfsd:{SCOPE}:inodes field b'8': a directory that is not below the root",
    ),
    "an inode number below zero": (
        lambda client, prefix: client.hset(f"{prefix}:inodes", "-5", _record()),
        "vfsd:{SCOPE}:inodes field b'-5'",
    ),
    "a size that no kernel takes": (
        lambda client, prefix: client.hset(f"{prefix}:inodes", "3", _record(size=2**63)),
        "vfsd:{SCOPE}:inodes field b'3': the size 9223372036854775808 is not between",
    ),
    "a mode without a type": (
        lambda client, prefix: client.hset(f"{prefix}:inodes", "3", _record(mode=0o644)),
        "vfsd:{SCOPE}:inodes field b'3': the mode 644 has no file type",
    ),
    "an inode without links": (
        lambda client, prefix: client.hset(f"{prefix}:inodes", "9", _record(nlink=0)),
        "vfsd:{SCOPE}:inodes field b'9': the number of links 0 is not between",
    ),
    "a cookie below the first": (
        lambda client, prefix: client.hset(f"{prefix}:entries", "2/one", "3 2"),
        "vfsd:{SCOPE}:entries field b'2/one': the cookie 2 is not between",
    ),
    "a cookie from which none can follow": (
        lambda client, prefix: client.hset(f"{prefix}:entries", "2/one", f"3 {2**63 - 1}"),
        "vfsd:{SCOPE}:entries field b'2/one': the cookie 9223372036854775807 is not between",
    ),
    "a key of a wrong type": (
        lambda client, prefix: (client.delete(f"{prefix}:data:3"), client.set(f"{prefix}:data:3", "x")),
        "vfsd:{SCOPE}:data:3: WRONGTYPE",
    ),
    "a name with a terminal's commands": (
        lambda client, prefix: client.hset(f"{prefix}:entries", "2/\x1b]0;owned\x07\n\x9b2J", "99 9"),
        r"vfsd:{SCOPE}:entries field b'2/\x1b]0;owned\x07\n\xc2\x9b2J': there is no inode 99",
    ),
    "a too long chunk": (
        lambda client, prefix: client.hset(f"{prefix}:data:3", "0", b"x" * 20_000),
        "vfsd:{SCOPE}:data:3 field b'0'",
    ),
}


@pytest.mark.parametrize("case", DAMAGES.values(), ids=DAMAGES.keys())
def test_the_error_names_a_damaged_record_and_the_rest_can_be_salvaged(
    mount: MountFactory,
    mounted: Mounted,
    redis_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[Damage, str],
) -> None:
    damage, named = case
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
    monkeypatch.setenv("VFSD_RUNTIME_DIR", salvaged.environment["VFSD_RUNTIME_DIR"])
    with connect(salvaged.path) as vfs:  # every walk over the tree ends
        assert "directory/two" in vfs.list_all_paths()
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


HEADERS = {"next": str(2**63 - 1), "limits": '{"max_bytes": "many"}', "epoch": "nonsense", "created": "-1"}


@pytest.mark.parametrize(("field", "value"), HEADERS.items())
def test_a_damaged_header_keeps_nobody_from_reading_the_files(
    mount: MountFactory, mounted: Mounted, redis_server: RedisServer, field: str, value: str
) -> None:
    key = f"vfsd:{{{mounted.scope}}}:scope"
    with redis_server.client() as client:
        client.hset(key, field, value)
        line = _refusal(mounted, 8)
        assert line.startswith(f"the header {key} of scope {mounted.scope} is not readable ({field}: ")
        assert "--salvage" in line
        assert client.hget(key, field) == value.encode()
    salvaged = mount(redis_server.url, "--salvage", scope=mounted.scope)
    salvaged.expected.append(f"scope {mounted.scope}, left out: ")
    assert f"{key} field {field.encode()!r}" in salvaged.log.read_text()
    assert (salvaged.path / "directory" / "one").read_bytes() == b"content of one"


@pytest.mark.parametrize("keys", [["inodes"], ["inodes", "entries"]])
def test_a_scope_that_has_lost_its_inodes_is_not_taken_for_a_new_one(
    mounted: Mounted, redis_server: RedisServer, keys: list[str]
) -> None:
    with redis_server.client() as client:
        client.delete(*(f"vfsd:{{{mounted.scope}}}:{key}" for key in keys))
    assert ":inodes field b'1': the root directory is missing" in _refusal(mounted, 8)


def test_what_is_below_a_lost_root_directory_can_be_salvaged(
    mount: MountFactory, mounted: Mounted, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        client.hdel(f"vfsd:{{{mounted.scope}}}:inodes", "1")
    assert ":inodes field b'1': the root directory is missing" in _refusal(mounted, 8)
    salvaged = mount(redis_server.url, "--salvage", scope=mounted.scope)
    salvaged.expected.append(f"scope {mounted.scope}, left out: ")
    assert (salvaged.path / "directory" / "one").read_bytes() == b"content of one"


def test_salvage_of_an_undamaged_scope_shows_everything(
    mount: MountFactory, mounted: Mounted, redis_server: RedisServer
) -> None:
    salvaged = mount(redis_server.url, "--salvage", scope=mounted.scope)
    assert {path.name for path in (salvaged.path / "directory").iterdir()} == {"one", "two"}
    assert Path(salvaged.path / "directory" / "one").read_bytes() == b"content of one"
