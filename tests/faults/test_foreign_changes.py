"""Another program removes records below a mount in Redis: the next change is refused, for good, and the log says why.

The records are gone from the store then, but memory still has all of them: reading goes on.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import redis

from tests.support.mounted import Mounted, MountFactory
from tests.support.outcomes import DONE, outcome, wait_for_log, write
from tests.support.servers import RedisServer

CHANGED = r"another program has changed scope .* copy what you need from this mount before you unmount it"
OLD = b"content" * 1000

CHANGES: dict[str, Callable[[Path], object]] = {
    "create": lambda root: (root / "new").touch(),
    "mkdir": lambda root: (root / "new").mkdir(),
    "write": lambda root: write(root / "file", b"new"),
    "truncate": lambda root: os.truncate(root / "file", 5),
    "chmod": lambda root: (root / "file").chmod(0o600),
    "unlink": lambda root: (root / "file").unlink(),
    "rename": lambda root: (root / "file").rename(root / "moved"),
}

REMOVALS: dict[str, tuple[str, ...]] = {
    "all inodes": ("DEL", "vfsd:{%s}:inodes"),
    "all inodes, in the background": ("UNLINK", "vfsd:{%s}:inodes"),
    "one inode": ("HDEL", "vfsd:{%s}:inodes", "3"),
    "all entries": ("DEL", "vfsd:{%s}:entries"),
    "one entry": ("HDEL", "vfsd:{%s}:entries", "1/other"),
    "all entries, by another name": ("RENAME", "vfsd:{%s}:entries", "vfsd:{%s}:elsewhere"),
    "all inodes, by their age": ("PEXPIRE", "vfsd:{%s}:inodes", "0"),
    "all inodes, and something else instead": ("SET", "vfsd:{%s}:inodes", "1"),
}


@pytest.fixture
def mounted(server: RedisServer, mount: MountFactory) -> Mounted:
    """Return a mount with two files."""
    mounted = mount(server.url, "--store-timeout", "30")
    for name in ("file", "other"):
        (mounted.path / name).write_bytes(OLD)
    mounted.expected.append(CHANGED)
    return mounted


def _remove(server: RedisServer, mounted: Mounted, removal: tuple[str, ...]) -> None:
    with server.client() as client:
        client.execute_command(*(word.replace("%s", mounted.scope) for word in removal))


def _assert_lost(mounted: Mounted) -> None:
    """Check that the mount refuses every change, and still shows what it has in memory."""
    wait_for_log(mounted, f"another program has changed scope {mounted.scope}")
    assert {name: outcome(partial(change, mounted.path)) for name, change in CHANGES.items()} == (
        dict.fromkeys(CHANGES, "EROFS")
    )
    assert sorted(os.listdir(mounted.path)) == ["file", "other"]
    assert (mounted.path / "file").read_bytes() == OLD


@pytest.mark.parametrize("removal", REMOVALS)
def test_a_change_after_records_were_removed_is_refused_for_good(
    server: RedisServer, mounted: Mounted, removal: str
) -> None:
    _remove(server, mounted, REMOVALS[removal])
    assert outcome((mounted.path / "new").touch) == "EROFS"
    _assert_lost(mounted)


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_notices_that_records_were_removed_and_stores_nothing(
    server: RedisServer, mounted: Mounted, name: str
) -> None:
    _remove(server, mounted, REMOVALS["all inodes"])
    assert outcome(lambda: CHANGES[name](mounted.path)) == "EROFS"
    _assert_lost(mounted)
    with server.client() as client:
        assert not client.exists(f"vfsd:{{{mounted.scope}}}:inodes")


@pytest.mark.parametrize("removal", ["all inodes", "all entries"])
def test_a_full_server_does_not_hide_that_records_were_removed(
    server: RedisServer, mounted: Mounted, removal: str
) -> None:
    _remove(server, mounted, REMOVALS[removal])
    with server.client() as client:
        client.config_set("maxmemory", 1)
        assert outcome((mounted.path / "file").unlink) == "EROFS"
        client.config_set("maxmemory", 0)
    _assert_lost(mounted)


@pytest.mark.parametrize("removal", ["all inodes", "one entry"])
def test_records_that_are_removed_while_the_connection_is_down_are_missed(
    server: RedisServer, mounted: Mounted, removal: str
) -> None:
    with server.client() as client:
        (daemon,) = [each["id"] for each in client.client_list() if each["cmd"] == "hlen"]
        pipe = client.pipeline(transaction=True)
        pipe.client_kill_filter(_id=daemon)
        pipe.execute_command(*(word.replace("%s", mounted.scope) for word in REMOVALS[removal]))
        pipe.execute()
    mounted.expected += [r"lost the store", r"trying again"]
    assert outcome((mounted.path / "new").touch) in {"EROFS", "EIO"}
    _assert_lost(mounted)


@pytest.mark.parametrize("name", ["overwrite", "append", "shorten"])
def test_a_change_of_content_that_was_removed_is_refused_for_good(
    server: RedisServer, mounted: Mounted, name: str
) -> None:
    changes: dict[str, Callable[[], object]] = {
        "overwrite": lambda: write(mounted.path / "file", b"new"),
        "append": lambda: write(mounted.path / "file", b"more", len(OLD)),
        "shorten": lambda: os.truncate(mounted.path / "file", 5),
    }
    with server.client() as client:
        ino = (mounted.path / "file").stat().st_ino
        assert client.delete(f"vfsd:{{{mounted.scope}}}:data:{ino}") == 1
    assert outcome(changes[name]) == "EROFS"
    _assert_lost(mounted)


def test_records_that_another_program_puts_back_are_no_loss(server: RedisServer, mounted: Mounted) -> None:
    """A record that is written again with the same bytes changes nothing: the change is sent again."""
    key = f"vfsd:{{{mounted.scope}}}:inodes"
    with server.client() as client:
        client.hset(key, "1", _hget(client, key, "1"))
    assert outcome((mounted.path / "new").touch) == DONE
    assert (mounted.path / "file").read_bytes() == OLD


def _hget(client: "redis.Redis", key: str, name: str) -> bytes:
    value = client.hget(key, name)
    assert isinstance(value, bytes)
    return value
