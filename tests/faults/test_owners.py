"""One owner a scope: a second is refused, a dead one followed, a living one can be fenced and then writes nothing."""

import os
import re
import signal
import socket
from functools import partial
from pathlib import Path

import pytest

from tests.faults.agreement import assert_agreement, stored
from tests.faults.calls import DONE, Pending, outcome, wait_for_log, write
from tests.faults.places import move_owner_elsewhere
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.servers import RedisServer
from tests.support.stores import DurablePlace, RedisPlace, SqlitePlace
from vfsd import clock

OLD, NEW = b"old content", b"new content"
FENCED = r"has been claimed by .*; this mount stays readable"


@pytest.fixture(params=["redis", "sqlite"])
def place(request: pytest.FixtureRequest, server: RedisServer, tmp_path: Path) -> DurablePlace:
    """Return the two stores that daemons may share, one after the other."""
    return RedisPlace(server) if request.param == "redis" else SqlitePlace(tmp_path / "scopes.db")


def _furnished(mount: MountFactory, place: DurablePlace) -> tuple[Mounted, Path]:
    mounted = mount(place.url)
    file = mounted.path / "file"
    file.write_bytes(OLD)
    return mounted, file


def _refusal(other: Mounted, *options: str) -> str:
    """Return what mounting *other* says; it must be refused as busy."""
    done = other.vfsd("mount", os.fspath(other.path), "--scope", other.scope, *options)
    assert done.returncode == 7, done.stderr
    return done.stderr


def test_a_second_mount_of_a_live_scope_is_refused_with_owner_host_and_age(
    mount: MountFactory, place: DurablePlace
) -> None:
    first, file = _furnished(mount, place)
    line = _refusal(mount(place.url, scope=first.scope, start=False))
    expected = (
        rf"scope {first.scope} is mounted: host {re.escape(socket.gethostname())}, pid {first.pid}, at {first.path}"
    )
    assert re.search(expected + r", since \d+ s ago; ", line), line
    write(file, NEW)
    assert_agreement(first)


def test_after_a_crash_the_next_mount_on_the_same_host_takes_over_at_once(
    mount: MountFactory, place: DurablePlace
) -> None:
    first, file = _furnished(mount, place)
    first.kill()
    assert place.lease_end(first.scope) > clock.now()
    second = mount(place.url, scope=first.scope)
    assert (second.path / "file").read_bytes() == OLD
    assert outcome(lambda: write(second.path / "file", NEW)) == DONE
    assert file != second.path / "file"


def test_after_a_crash_elsewhere_the_next_mount_has_to_wait_for_the_end_of_the_lease(
    mount: MountFactory, place: DurablePlace, server: RedisServer
) -> None:
    first, _ = _furnished(mount, place)
    first.kill()
    move_owner_elsewhere(place, server, first.scope)
    second = mount(place.url, scope=first.scope, start=False)
    assert "host far.example" in _refusal(second)
    place.end_lease(first.scope)
    second.start()
    assert (second.path / "file").read_bytes() == OLD


def test_taking_over_fences_the_living_owner_which_stays_readable(mount: MountFactory, place: DurablePlace) -> None:
    first, file = _furnished(mount, place)
    first.expected.append(FENCED)
    second = mount(place.url, "--take-over", scope=first.scope)
    write(second.path / "file", NEW)
    before = stored(place.url, first.scope)
    assert outcome(lambda: write(file, b"of the fenced")) == "EROFS"
    assert outcome((first.path / "directory").mkdir) == "EROFS"
    assert outcome(file.unlink) == "EROFS"
    assert file.read_bytes() == OLD
    assert os.listdir(first.path) == ["file"]
    assert re.search(rf"claimed by .*pid {second.pid}, at {second.path}", first.log.read_text())
    assert stored(place.url, first.scope) == before
    assert first.stop() == 0
    assert outcome((second.path / "directory").mkdir) == DONE
    assert_agreement(second)


def test_a_daemon_frozen_past_its_lease_cannot_write_one_byte_once_it_is_thawed(
    mount: MountFactory, place: DurablePlace
) -> None:
    """It was frozen amid a storm of writes, some of them on their way."""
    first, _ = _furnished(mount, place)
    first.expected.append(FENCED)
    names = [first.path / f"storm{number}" for number in range(4)]
    for path in names:
        path.write_bytes(b"0")
    storm = [Pending(partial(_write_for_ever, path)) for path in names]
    wait_until(lambda: min(path.stat().st_size for path in names) > 20, "the storm to blow")
    os.kill(first.pid, signal.SIGSTOP)
    place.end_lease(first.scope)
    second = mount(place.url, scope=first.scope)
    (second.path / "storm0").unlink()
    write(second.path / "storm1", NEW)
    before = assert_agreement(second)
    os.kill(first.pid, signal.SIGCONT)
    assert {each.outcome() for each in storm} == {"EROFS"}
    wait_for_log(first, "this mount stays readable")
    assert stored(place.url, second.scope) == before
    assert outcome((second.path / "directory").mkdir) == DONE
    assert_agreement(second)


def _write_for_ever(path: Path) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        while True:
            os.write(fd, b"some more")
    finally:
        os.close(fd)


def test_read_only_mounts_need_no_claim_and_disturb_nobody(mount: MountFactory, place: DurablePlace) -> None:
    first, file = _furnished(mount, place)
    readers = [mount(place.url, "--read-only", scope=first.scope) for _ in range(2)]
    write(file, NEW)
    for reader in readers:
        assert (reader.path / "file").read_bytes() == OLD  # as it was when it was mounted
        assert outcome((reader.path / "directory").mkdir) == "EROFS"
        assert reader.stop() == 0
    assert outcome((first.path / "directory").mkdir) == DONE
    assert_agreement(first)
