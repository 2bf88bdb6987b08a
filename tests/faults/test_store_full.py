"""A Redis at its ``maxmemory``: changes that grow fail with ENOSPC, others work, and the mount recovers by itself."""

import os
from collections.abc import Callable
from functools import partial

import pytest

from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.outcomes import DONE, PendingCall, outcome, pending_changes, wait_until_writable, write
from tests.support.servers import RedisServer
from tests.support.store_comparison import assert_store_matches, commit_count

OLD = b"old content" * 5000


class FullMount:
    """A mount whose server has no free memory, with some files in it."""

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

    def free_memory(self) -> None:
        with self._server.client() as client:
            client.config_set("maxmemory", 0)

    def commits(self) -> int:
        return commit_count(self._server, self.mounted.scope)


@pytest.fixture
def full(server: RedisServer, mount: MountFactory) -> FullMount:
    """Return a mount on a full server."""
    return FullMount(mount(server.url, "--store-timeout", "30"), server)


def test_changes_that_grow_are_enospc_and_change_nothing(full: FullMount) -> None:
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
    before, count = assert_store_matches(full.mounted), full.commits()
    assert {name: outcome(call) for name, call in calls.items()} == dict.fromkeys(calls, "ENOSPC")
    assert assert_store_matches(full.mounted) == before
    assert full.commits() == count
    full.free_memory()
    wait_until_writable(root)
    assert outcome(calls["append"]) == DONE
    assert (root / "written").read_bytes() == OLD + b"more"
    assert_store_matches(full.mounted)


def test_changes_that_need_no_memory_work(full: FullMount) -> None:
    root = full.root
    os.truncate(root / "emptied", 0)
    os.truncate(root / "grown", 10_000)
    (root / "removed").unlink()
    (root / "renamed").rename(root / "directory" / "moved")
    (root / "written").rename(root / "grown")
    (root / "directory" / "moved").unlink()
    (root / "directory").rmdir()
    (root / "grown").chmod(0o600)
    found = assert_store_matches(full.mounted)
    assert found.facts.keys() == {b"", b"emptied", b"grown", b"rewritten"}
    assert found.facts[b"emptied"].content == b""
    assert found.facts[b"grown"].content == OLD


def test_a_rewrite_on_a_full_server_leaves_an_empty_file_as_on_any_disk(full: FullMount) -> None:
    """The truncation is valid, as POSIX requires, and is stored. The write is refused."""
    fd = os.open(full.root / "rewritten", os.O_WRONLY | os.O_TRUNC)
    assert outcome(lambda: os.write(fd, OLD)) == "ENOSPC"
    os.close(fd)
    wait_until(lambda: _store_matches(full.mounted), "the truncation to be stored")
    assert (full.root / "rewritten").read_bytes() == b""


def _store_matches(mounted: Mounted) -> bool:
    try:
        assert_store_matches(mounted)
    except AssertionError:
        return False
    return True


def test_a_change_that_grows_does_not_fail_others_in_the_same_transaction(full: FullMount, server: RedisServer) -> None:
    """Changes that wait at the same time share a transaction, but each one has its own outcome."""
    server.freeze()
    first = PendingCall(lambda: os.truncate(full.root / "emptied", 0))
    wait_until(lambda: pending_changes(full.mounted) == 1, "the first to wait")
    growing = [PendingCall(partial(write, full.root / name, b"x", len(OLD))) for name in ("written", "grown")]
    removing = PendingCall((full.root / "removed").unlink)
    wait_until(lambda: pending_changes(full.mounted) == 4, "all to wait")
    server.thaw()
    assert first.outcome() == removing.outcome() == DONE
    assert [each.outcome() for each in growing] == ["ENOSPC", "ENOSPC"]
    assert_store_matches(full.mounted)


def test_a_scope_on_a_full_server_can_be_mounted_to_remove_files(full: FullMount) -> None:
    full.mounted.remount()
    assert outcome((full.root / "new").mkdir) == "ENOSPC"
    (full.root / "removed").unlink()
    full.mounted.kill()
    full.mounted.start()
    assert not (full.root / "removed").exists()
    assert_store_matches(full.mounted)


def test_df_shows_the_free_memory_of_the_server(server: RedisServer, mount: MountFactory) -> None:
    with server.client() as client:
        client.config_set("maxmemory", 300 << 20)
    free = os.statvfs(mount(server.url).path)
    assert free.f_blocks * free.f_frsize == 300 << 20
    assert (250 << 20) < free.f_bavail * free.f_frsize < (300 << 20)
