"""Faults around the daemon: a hang at the end, an aborted connection, no descriptors, a full disk, a clock set back."""

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

from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.outcomes import (
    DONE,
    OUTAGE,
    STORE_AWAY,
    STORE_BACK,
    STORE_LOST,
    PendingCall,
    outcome,
    pending_changes,
    wait_until_writable,
    write,
)
from tests.support.servers import RedisServer
from tests.support.store_comparison import assert_store_matches

OLD, NEW = b"old content", b"new content"
HOUR_NS = 3600 * 10**9
MAX_SECONDS = 10.0
"""How long the daemon may take to end with a deadline of one second, on a busy machine."""

# --- the end


@pytest.mark.parametrize("writers", [0, 20], ids=["idle", "under load"])
def test_a_signal_ends_the_daemon_within_the_deadline_while_the_store_hangs(
    server: RedisServer, mount: MountFactory, writers: int
) -> None:
    mounted = mount(server.url, "--store-timeout", "1")
    mounted.expected += OUTAGE
    paths = [mounted.path / f"file{number}" for number in range(writers)]
    for path in paths:
        path.write_bytes(OLD)
    server.freeze()
    writing = [PendingCall(partial(write, path, NEW)) for path in paths]
    wait_until(lambda: pending_changes(mounted) == writers, "the writers to hang")
    started = time.monotonic()
    assert mounted.signal(signal.SIGTERM) == 13
    assert time.monotonic() - started < MAX_SECONDS
    assert not mounted.is_mounted()
    assert {each.outcome() for each in writing} <= {"EIO"}
    assert re.search(r"could not be released, its lease will end by itself", mounted.log.read_text())
    server.thaw()
    mounted.start()
    assert {path.read_bytes() for path in paths} <= {OLD, NEW}


# --- the connection


def test_an_aborted_connection_ends_the_daemon_without_errors_about_replies(
    server: RedisServer, mount: MountFactory
) -> None:
    mounted = mount(server.url)
    files = [mounted.path / name for name in ("one", "two")]
    for file in files:
        file.write_bytes(OLD)
    server.freeze()
    calls = [PendingCall(partial(write, file, NEW)) for file in files]
    calls.append(PendingCall((mounted.path / "directory").mkdir))
    wait_until(lambda: pending_changes(mounted) == len(calls), "the changes to hang")
    subprocess.run(["umount", "--force", mounted.path], check=False, capture_output=True)  # aborts, then finds it busy
    assert {each.outcome() for each in calls} <= {"ECONNABORTED", "ENOTCONN"}
    server.thaw()
    mounted.wait()
    mounted.start()
    assert {file.read_bytes() for file in files} <= {OLD, NEW}


# --- descriptors


@contextmanager
def _no_descriptors(mounted: Mounted) -> Iterator[None]:
    """Let the daemon open no new file descriptors during the block."""
    limits = resource.prlimit(mounted.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(mounted.pid, resource.RLIMIT_NOFILE, (1, limits[1]))
    try:
        yield
    finally:
        resource.prlimit(mounted.pid, resource.RLIMIT_NOFILE, limits)


def test_without_free_descriptors_the_daemon_continues_and_reconnects_later(
    server: RedisServer, mount: MountFactory
) -> None:
    mounted = mount(server.url, "--store-timeout", "1", "--max-memory", "1G")
    mounted.expected += [STORE_LOST, STORE_AWAY, STORE_BACK, "Too many open files"]
    file = mounted.path / "file"
    file.write_bytes(OLD)
    with _no_descriptors(mounted):
        assert outcome(lambda: write(file, NEW)) == DONE
        with server.client() as client:
            client.client_kill_filter(_type="normal", skipme=True)
        assert outcome(lambda: write(file, b"refused")) == "EIO"
        wait_until(lambda: "Too many open files" in mounted.log.read_text(), "the reason in the log")
        assert file.read_bytes() == NEW
        wait_until(
            lambda: "cannot measure the daemon's memory" in mounted.log.read_text(), "the daemon to measure its memory"
        )
    wait_until_writable(mounted.path)
    assert_store_matches(mounted)


def test_without_free_descriptors_sqlite_continues(mount: MountFactory, tmp_path: Path) -> None:
    mounted = mount(f"sqlite:{tmp_path / 'scopes.db'}")
    file = mounted.path / "file"
    file.write_bytes(OLD)
    with _no_descriptors(mounted):
        assert outcome(lambda: write(file, NEW)) == DONE
        assert outcome(lambda: _fsync(file)) == "EIO"
        assert file.read_bytes() == NEW
    assert outcome(lambda: _fsync(file)) == DONE
    assert_store_matches(mounted)


def _fsync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# --- the disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a new file system of 64 MiB."""
    mountpoint = tmp_path / "disk"
    mountpoint.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "vfsd-test", mountpoint], check=True)
    try:
        yield mountpoint
    finally:
        subprocess.run(["umount", mountpoint], check=True)


def test_a_full_disk_under_sqlite_is_enospc_until_there_is_free_space(disk: Path, mount: MountFactory) -> None:
    mounted = mount(f"sqlite:{disk / 'scopes.db'}")
    (mounted.path / "kept").write_bytes(OLD)
    (mounted.path / "removed").write_bytes(OLD * 10_000)
    filler = disk / "filler"
    free = os.statvfs(disk)
    filler.write_bytes(bytes((free.f_bavail - 1) * free.f_frsize))
    before = assert_store_matches(mounted)
    assert outcome(lambda: write(mounted.path / "kept", NEW)) == "ENOSPC"
    assert outcome((mounted.path / "directory").mkdir) == "ENOSPC"
    assert assert_store_matches(mounted) == before
    filler.unlink()
    assert outcome(lambda: write(mounted.path / "kept", NEW)) == DONE
    assert_store_matches(mounted)
    assert mounted.stop() == 0


def test_sqlite_keeps_enough_free_space_to_remove_files(disk: Path, mount: MountFactory) -> None:
    """Changes that grow are refused before the disk is full, so that removing still works."""
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
    assert_store_matches(mounted)
    assert mounted.stop() == 0


# --- the clock


def test_after_the_clock_is_set_back_an_hour_all_changes_are_complete(server: RedisServer, mount: MountFactory) -> None:
    """The daemon sees a scope whose times are an hour in the future. A change gets the current time."""
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
    assert_store_matches(mounted)
    mounted.remount()
    assert_store_matches(mounted)
