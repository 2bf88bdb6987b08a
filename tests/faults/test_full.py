"""A Redis at its ``maxmemory``: ENOSPC for what grows, everything that frees room still works, recovery by itself."""

import os
from collections.abc import Callable
from functools import partial

import pytest

from tests.faults.agreement import assert_agreement, commits
from tests.faults.calls import DONE, Pending, outcome, pending, wait_until_writable, write
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.servers import RedisServer

OLD = b"old content" * 5000


class Full:
    """A mount of a server that has no room left, and what was in it before."""

    def __init__(self, mounted: Mounted, server: RedisServer) -> None:
        self.mounted = mounted
        self.root = mounted.path
        self._server = server
        for name in ("written", "grown", "emptied", "removed", "renamed", "rewritten"):
            (self.root / name).write_bytes(OLD)
        (self.root / "directory").mkdir()
        self.fill()

    def fill(self) -> None:
        with self._server.client() as client:
            client.config_set("maxmemory", 1)

    def make_room(self) -> None:
        with self._server.client() as client:
            client.config_set("maxmemory", 0)

    def commits(self) -> int:
        return commits(self._server, self.mounted.scope)


@pytest.fixture
def full(server: RedisServer, mount: MountFactory) -> Full:
    """Return a mount on a full server."""
    return Full(mount(server.url, "--store-timeout", "30"), server)


def test_what_grows_is_enospc_and_changes_nothing(full: Full) -> None:
    root = full.root
    calls: dict[str, Callable[[], object]] = {
        "append": lambda: write(root / "written", b"more", len(OLD)),
        "overwrite": lambda: write(root / "written", b"new", 0),
        "truncate to more": lambda: os.truncate(root / "grown", 10 * len(OLD)),
        "create": (root / "new").touch,
        "mkdir": (root / "new").mkdir,
        "symlink": lambda: (root / "new").symlink_to("written"),
        "link": lambda: os.link(root / "written", root / "new"),
    }
    before, count = assert_agreement(full.mounted), full.commits()
    assert {name: outcome(call) for name, call in calls.items()} == dict.fromkeys(calls, "ENOSPC")
    assert assert_agreement(full.mounted) == before
    assert full.commits() == count
    full.make_room()
    wait_until_writable(root)
    assert outcome(calls["append"]) == DONE
    assert (root / "written").read_bytes() == OLD + b"more"
    assert_agreement(full.mounted)


def test_what_needs_no_room_works(full: Full) -> None:
    root = full.root
    os.truncate(root / "emptied", 0)
    os.truncate(root / "grown", 10_000)
    (root / "removed").unlink()
    (root / "renamed").rename(root / "directory" / "moved")
    (root / "written").rename(root / "grown")
    (root / "directory" / "moved").unlink()
    (root / "directory").rmdir()
    (root / "grown").chmod(0o600)
    found = assert_agreement(full.mounted)
    assert found.facts.keys() == {b"", b"emptied", b"grown", b"rewritten"}
    assert found.facts[b"emptied"].content == b""
    assert found.facts[b"grown"].content == OLD


def test_a_rewrite_without_room_leaves_an_empty_file_as_on_any_disk(full: Full) -> None:
    """The truncation stands, as POSIX has it, and is stored; the write is refused."""
    fd = os.open(full.root / "rewritten", os.O_WRONLY | os.O_TRUNC)
    assert outcome(lambda: os.write(fd, OLD)) == "ENOSPC"
    os.close(fd)
    wait_until(lambda: _agrees(full.mounted), "the truncation to be stored")
    assert (full.root / "rewritten").read_bytes() == b""


def _agrees(mounted: Mounted) -> bool:
    try:
        assert_agreement(mounted)
    except AssertionError:
        return False
    return True


def test_what_grows_takes_nothing_down_that_waits_beside_it(full: Full, server: RedisServer) -> None:
    """Changes that wait at the same moment share a transaction: each has an outcome of its own all the same."""
    server.freeze()
    first = Pending(lambda: os.truncate(full.root / "emptied", 0))
    wait_until(lambda: pending(full.mounted) == 1, "the first to wait")
    growing = [Pending(partial(write, full.root / name, b"x", len(OLD))) for name in ("written", "grown")]
    removing = Pending((full.root / "removed").unlink)
    wait_until(lambda: pending(full.mounted) == 4, "all to wait")
    server.thaw()
    assert first.outcome() == removing.outcome() == DONE
    assert [each.outcome() for each in growing] == ["ENOSPC", "ENOSPC"]
    assert_agreement(full.mounted)


def test_a_full_server_can_be_mounted_to_make_room(full: Full) -> None:
    full.mounted.remount()
    assert outcome((full.root / "new").mkdir) == "ENOSPC"
    (full.root / "removed").unlink()
    full.mounted.kill()
    full.mounted.start()
    assert not (full.root / "removed").exists()
    assert_agreement(full.mounted)


def test_df_shows_what_is_left(server: RedisServer, mount: MountFactory) -> None:
    with server.client() as client:
        client.config_set("maxmemory", 300 << 20)
    seen = os.statvfs(mount(server.url).path)
    assert seen.f_blocks * seen.f_frsize == 300 << 20
    assert (250 << 20) < seen.f_bavail * seen.f_frsize < (300 << 20)
