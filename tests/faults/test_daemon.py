"""The daemon itself: an end within its deadline, no descriptors left, no disk left, a clock that was set back."""

import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.faults.agreement import assert_agreement
from tests.faults.calls import AWAY, BACK, DONE, LOST, OUTAGE, Pending, outcome, pending, wait_until_writable, write
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.servers import RedisServer

OLD, NEW = b"old content", b"new content"
HOUR_NS = 3600 * 10**9
GENEROUS = 10.0
"""Seconds that an end within a deadline of one second may take on a busy machine."""

# --- the end


@pytest.mark.parametrize("writers", [0, 20], ids=["idle", "under load"])
def test_a_signal_ends_it_within_the_deadline_while_the_store_hangs(
    server: RedisServer, mount: MountFactory, writers: int
) -> None:
    mounted = mount(server.url, "--store-timeout", "1")
    mounted.expected += OUTAGE
    paths = [mounted.path / f"file{number}" for number in range(writers)]
    for path in paths:
        path.write_bytes(OLD)
    server.freeze()
    writing = [Pending(partial(write, path, NEW)) for path in paths]
    wait_until(lambda: pending(mounted) == writers, "the writers to hang")
    started = time.monotonic()
    assert mounted.signal(signal.SIGTERM) == 13
    assert time.monotonic() - started < GENEROUS
    assert not mounted.is_mounted()
    assert {each.outcome() for each in writing} <= {"EIO"}
    assert re.search(r"could not be released, its lease will end by itself", mounted.log.read_text())
    server.thaw()
    mounted.start()
    assert {path.read_bytes() for path in paths} <= {OLD, NEW}


# --- descriptors


@contextmanager
def _no_descriptors(mounted: Mounted) -> Iterator[None]:
    """Let the daemon open nothing more for a while."""
    present = resource.prlimit(mounted.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(mounted.pid, resource.RLIMIT_NOFILE, (1, present[1]))
    try:
        yield
    finally:
        resource.prlimit(mounted.pid, resource.RLIMIT_NOFILE, present)


def test_out_of_descriptors_it_goes_on_and_reconnects_when_it_has_some(
    server: RedisServer, mount: MountFactory
) -> None:
    mounted = mount(server.url, "--store-timeout", "1", "--max-memory", "1G")
    mounted.expected += [LOST, AWAY, BACK, "Too many open files"]
    file = mounted.path / "file"
    file.write_bytes(OLD)
    with _no_descriptors(mounted):
        assert outcome(lambda: write(file, NEW)) == DONE
        with server.client() as client:
            client.client_kill_filter(_type="normal", skipme=True)
        assert outcome(lambda: write(file, b"refused")) == "EIO"
        wait_until(lambda: "Too many open files" in mounted.log.read_text(), "the log to say why")
        assert file.read_bytes() == NEW
        wait_until(lambda: "cannot measure the daemon's memory" in mounted.log.read_text(), "the daemon to look at it")
    wait_until_writable(mounted.path)
    assert_agreement(mounted)


def test_out_of_descriptors_with_sqlite(mount: MountFactory, tmp_path: Path) -> None:
    mounted = mount(f"sqlite:{tmp_path / 'scopes.db'}")
    file = mounted.path / "file"
    file.write_bytes(OLD)
    with _no_descriptors(mounted):
        assert outcome(lambda: write(file, NEW)) == DONE
        assert outcome(lambda: _fsync(file)) == "EIO"
        assert file.read_bytes() == NEW
    assert outcome(lambda: _fsync(file)) == DONE
    assert_agreement(mounted)


def _fsync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# --- the disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a file system of 64 MiB of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "vfsd-test", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_full_disk_under_sqlite_is_enospc_until_there_is_room(disk: Path, mount: MountFactory) -> None:
    mounted = mount(f"sqlite:{disk / 'scopes.db'}")
    (mounted.path / "kept").write_bytes(OLD)
    (mounted.path / "removed").write_bytes(OLD * 10_000)
    filler = disk / "filler"
    room = os.statvfs(disk)
    filler.write_bytes(bytes((room.f_bavail - 1) * room.f_frsize))
    before = assert_agreement(mounted)
    assert outcome(lambda: write(mounted.path / "kept", NEW)) == "ENOSPC"
    assert outcome((mounted.path / "directory").mkdir) == "ENOSPC"
    assert assert_agreement(mounted) == before
    filler.unlink()
    assert outcome(lambda: write(mounted.path / "kept", NEW)) == DONE
    assert_agreement(mounted)
    assert mounted.stop() == 0


def test_sqlite_leaves_itself_room_for_removing(disk: Path, mount: MountFactory) -> None:
    """When growing is refused some of the disk is left, so that removing works."""
    mounted = mount(f"sqlite:{disk / 'scopes.db'}")
    block = os.urandom(1 << 20)
    written = 0
    while outcome(partial((mounted.path / f"file{written}").write_bytes, block)) == DONE:
        written += 1
        assert written < 64
    assert written > 5
    for number in range(written):
        (mounted.path / f"file{number}").unlink()
    assert outcome(lambda: (mounted.path / "again").write_bytes(block)) == DONE
    assert_agreement(mounted)
    assert mounted.stop() == 0


# --- the clock


def test_a_clock_that_was_set_back_an_hour_loses_and_tears_nothing(server: RedisServer, mount: MountFactory) -> None:
    """To the daemon it is a scope whose times lie an hour ahead: a change gets the time that it is now."""
    mounted = mount(server.url)
    file, directory = mounted.path / "file", mounted.path / "directory"
    directory.mkdir()
    file.write_bytes(OLD)
    ahead = time.time_ns() + HOUR_NS
    for path in (file, directory):
        os.utime(path, ns=(ahead, ahead))
    before = time.time_ns()
    write(file, NEW)
    (directory / "new").touch()
    for path in (file, directory):
        assert before <= path.stat().st_mtime_ns < ahead
    assert file.read_bytes() == NEW
    assert_agreement(mounted)
    mounted.remount()
    assert_agreement(mounted)
