"""A scope has one owner: a second mount is refused, a dead owner is replaced, and a fenced owner writes nothing."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.faults.owner_record import move_owner_to_another_host
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.outcomes import DONE, PendingCall, outcome, wait_for_log, write
from tests.support.servers import RedisServer
from tests.support.store_comparison import assert_store_matches, stored_tree
from tests.support.stores import DurableBackend, RedisBackend, SqliteBackend
from vfsd import clock

OLD, NEW = b"old content", b"new content"
FENCED = r"has been claimed by .*; this mount stays readable"


@pytest.fixture(params=["redis", "sqlite"])
def store(request: pytest.FixtureRequest, server: RedisServer, tmp_path: Path) -> DurableBackend:
    """Return each of the two stores that daemons may share."""
    return RedisBackend(server) if request.param == "redis" else SqliteBackend(tmp_path / "scopes.db")


def _mount_with_files(mount: MountFactory, store: DurableBackend) -> tuple[Mounted, Path]:
    mounted = mount(store.url)
    file = mounted.path / "file"
    file.write_bytes(OLD)
    return mounted, file


def _refusal(other: Mounted, *options: str) -> str:
    """Return the error of mounting *other*, which must be refused as busy."""
    done = other.vfsd("mount", os.fspath(other.path), "--scope", other.scope, *options)
    assert done.returncode == 7, done.stderr
    return done.stderr


def test_a_second_mount_of_a_live_scope_is_refused_with_owner_host_and_age(
    mount: MountFactory, store: DurableBackend
) -> None:
    first, file = _mount_with_files(mount, store)
    line = _refusal(mount(store.url, scope=first.scope, start=False))
    expected = (
        rf"scope {first.scope} is mounted: host {re.escape(socket.gethostname())}, pid {first.pid}, at {first.path}"
    )
    assert re.search(expected + r", since \d+ s ago; ", line), line
    write(file, NEW)
    assert_store_matches(first)


def test_after_a_crash_the_next_mount_on_the_same_host_succeeds_at_once(
    mount: MountFactory, store: DurableBackend
) -> None:
    first, file = _mount_with_files(mount, store)
    first.kill()
    assert store.lease_end(first.scope) > clock.now()
    second = mount(store.url, scope=first.scope)
    assert (second.path / "file").read_bytes() == OLD
    assert outcome(lambda: write(second.path / "file", NEW)) == DONE
    assert file != second.path / "file"


def test_after_a_crash_on_another_host_the_next_mount_waits_for_the_end_of_the_lease(
    mount: MountFactory, store: DurableBackend, server: RedisServer
) -> None:
    first, _ = _mount_with_files(mount, store)
    first.kill()
    move_owner_to_another_host(store, server, first.scope)
    second = mount(store.url, scope=first.scope, start=False)
    assert "host far.example" in _refusal(second)
    store.end_lease(first.scope)
    second.start()
    assert (second.path / "file").read_bytes() == OLD


def test_take_over_fences_the_living_owner_which_stays_readable(mount: MountFactory, store: DurableBackend) -> None:
    first, file = _mount_with_files(mount, store)
    first.expected.append(FENCED)
    second = mount(store.url, "--take-over", scope=first.scope)
    write(second.path / "file", NEW)
    before = stored_tree(store.url, first.scope)
    assert outcome(lambda: write(file, b"of the fenced")) == "EROFS"
    assert outcome((first.path / "directory").mkdir) == "EROFS"
    assert outcome(file.unlink) == "EROFS"
    assert file.read_bytes() == OLD
    assert os.listdir(first.path) == ["file"]
    assert re.search(rf"claimed by .*pid {second.pid}, at {second.path}", first.log.read_text())
    assert stored_tree(store.url, first.scope) == before
    assert first.stop() == 0
    assert outcome((second.path / "directory").mkdir) == DONE
    assert_store_matches(second)


def test_an_owner_that_lives_on_this_host_keeps_its_scope_when_its_lease_ends(
    mount: MountFactory, store: DurableBackend
) -> None:
    """A step of the clock ends the lease. A frozen owner lives too: taking over from it is the operator's decision."""
    first, file = _mount_with_files(mount, store)
    second = mount(store.url, scope=first.scope, start=False)
    with _frozen_where_others_can_write(first, store):
        store.end_lease(first.scope)
        assert f"pid {first.pid}, at {first.path}" in _refusal(second)
        destroyed = second.vfsd("destroy", first.scope, "--yes")
        assert destroyed.returncode == 7, destroyed.stderr
    write(file, NEW)
    assert_store_matches(first)


def test_a_daemon_that_was_frozen_past_its_lease_cannot_write_after_the_thaw(
    mount: MountFactory, store: DurableBackend, server: RedisServer
) -> None:
    """It was frozen during many writes, and some of them were under way. It seems to run on another host."""
    first, _ = _mount_with_files(mount, store)
    first.expected.append(FENCED)
    names = [first.path / f"log{number}" for number in range(4)]
    for path in names:
        path.write_bytes(b"0")
    writing = [PendingCall(partial(_append_endlessly, path)) for path in names]
    wait_until(lambda: min(path.stat().st_size for path in names) > 20, "all writers to write")
    with _frozen_where_others_can_write(first, store):
        move_owner_to_another_host(store, server, first.scope)
        store.end_lease(first.scope)
        second = mount(store.url, scope=first.scope)
        (second.path / "log0").unlink()
        write(second.path / "log1", NEW)
        before = assert_store_matches(second)
    assert {each.outcome() for each in writing} == {"EROFS"}
    wait_for_log(first, "this mount stays readable")
    assert stored_tree(store.url, second.scope) == before
    assert outcome((second.path / "directory").mkdir) == DONE
    assert_store_matches(second)


def test_a_daemon_that_was_frozen_past_its_lease_goes_on_if_nobody_has_claimed_since(
    mount: MountFactory, server: RedisServer
) -> None:
    """The first change after the thaw claims the scope again, so a second mount is refused as before."""
    store = RedisBackend(server)
    first, file = _mount_with_files(mount, store)
    with first.frozen():
        wait_until(lambda: store.lease_end(first.scope) <= clock.now(), "the lease to end")
    write(file, NEW)
    assert "is mounted: host" in _refusal(mount(store.url, scope=first.scope, start=False))
    assert_store_matches(first)


@contextmanager
def _frozen_where_others_can_write(mounted: Mounted, store: DurableBackend) -> Iterator[None]:
    """Freeze the daemon during the block, but not in the middle of a transaction: that would lock the SQLite file."""
    while True:
        with mounted.frozen():
            if not store.is_locked():
                yield
                return


def _append_endlessly(path: Path) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        while True:
            os.write(fd, b"some more")
    finally:
        os.close(fd)


def test_read_only_mounts_need_no_claim_and_do_not_disturb_the_owner(
    mount: MountFactory, store: DurableBackend
) -> None:
    first, file = _mount_with_files(mount, store)
    readers = [mount(store.url, "--read-only", scope=first.scope) for _ in range(2)]
    write(file, NEW)
    for reader in readers:
        assert (reader.path / "file").read_bytes() == OLD  # the content at the time of the mount
        assert outcome((reader.path / "directory").mkdir) == "EROFS"
        assert reader.stop() == 0
    assert outcome((first.path / "directory").mkdir) == DONE
    assert_store_matches(first)
