"""A store that is frozen, killed or busy.

Changes are slow until the deadline, and then fail with EIO. Reads always work. The mount recovers by itself.
"""

import os
import resource
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import redis

from tests.faults.conftest import ServerFactory
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.outcomes import (
    DONE,
    OUTAGE,
    PendingCall,
    outcome,
    pending_changes,
    wait_for_log,
    wait_until_writable,
    write,
)
from tests.support.servers import RedisServer, ServerOptions
from tests.support.store_comparison import assert_store_matches

OLD, NEW = b"old content", b"new content"
WRITERS = 120
HUNG = 1_100
"""Writers that wait for the store at the same time. pyfuse3's own limit is 99 requests."""
MAX_SECONDS = 10.0
"""How long a call with a deadline of one second may take on a busy machine."""


def _mount_with_files(mounted: Mounted, files: int = 1) -> list[Path]:
    mounted.expected += OUTAGE
    paths = [mounted.path / f"file{number}" for number in range(files)]
    for path in paths:
        path.write_bytes(OLD)
    return paths


def test_a_freeze_shorter_than_the_deadline_makes_a_call_slow(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url, "--store-timeout", "60")
    (file,) = _mount_with_files(mounted)
    server.freeze()
    writing = PendingCall(lambda: write(file, NEW))
    making = PendingCall((mounted.path / "directory").mkdir)
    wait_until(lambda: pending_changes(mounted) == 2, "two changes to wait")
    assert not writing.has_returned
    assert not making.has_returned
    server.thaw()
    assert writing.outcome() == making.outcome() == DONE
    assert_store_matches(mounted)


def test_a_longer_freeze_is_eio_at_the_deadline_then_at_once_until_it_recovers(
    server: RedisServer, mount: MountFactory
) -> None:
    mounted = mount(server.url, "--store-timeout", "1")
    paths = _mount_with_files(mounted, WRITERS)
    server.freeze()
    started = time.monotonic()
    writing = [PendingCall(partial(write, path, NEW)) for path in paths]
    assert {each.outcome() for each in writing} == {"EIO"}
    assert time.monotonic() - started < MAX_SECONDS
    started = time.monotonic()
    assert {outcome((mounted.path / f"directory{number}").mkdir) for number in range(100)} == {"EIO"}
    assert time.monotonic() - started < MAX_SECONDS  # a hundred calls, one after the other, in the time of one
    assert {path.read_bytes() for path in paths} == {OLD}
    assert len(os.listdir(mounted.path)) == WRITERS
    server.thaw()
    wait_until_writable(mounted.path)
    wait_until(lambda: outcome(lambda: write(paths[0], NEW)) == DONE, "the commits in doubt to be settled")
    assert_store_matches(mounted)


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Let this process have a file open for each writer."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 2 * HUNG), max(limits[1], 2 * HUNG)))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("many_descriptors")
def test_readers_never_wait_for_hung_writers(server: RedisServer, mount: MountFactory) -> None:
    """More writers hang on a frozen store than any usual limit on requests. All reads end before the thaw.

    The test calls stat on all files first. Otherwise the kernel gets new attributes during the writes: then it drops
    cached pages, and waits for a page that is being written.
    """
    mounted = mount(server.url, "--store-timeout", "60")
    paths = _mount_with_files(mounted, HUNG)
    assert {path.stat().st_size for path in paths} == {len(OLD)}
    read = mounted.path / "read"
    read.write_bytes(OLD * 1000)
    server.freeze()
    writing = [PendingCall(partial(write, path, NEW)) for path in paths]
    wait_until(lambda: pending_changes(mounted) == HUNG, "all writers to hang")
    fd = os.open(read, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    assert os.pread(fd, 1 << 20, 0) == OLD * 1000
    os.close(fd)
    assert len(os.listdir(mounted.path)) == HUNG + 1
    assert not (mounted.path / "never looked up").exists()
    assert [path.stat().st_size for path in paths] == [len(OLD)] * HUNG
    assert not any(each.has_returned for each in writing)
    server.thaw()
    assert {each.outcome() for each in writing} == {DONE}
    assert_store_matches(mounted)


def test_a_server_that_restarts_empty_leaves_a_readable_mount(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url, "--store-timeout", "1")
    (file,) = _mount_with_files(mounted)
    mounted.expected += [r"is gone from the store"]
    server.kill()
    assert outcome(lambda: write(file, NEW)) == "EIO"
    server.start()
    wait_for_log(mounted, f"scope {mounted.scope} is gone from the store")
    assert outcome(lambda: write(file, NEW)) == "EROFS"
    assert outcome((mounted.path / "directory").mkdir) == "EROFS"
    assert file.read_bytes() == OLD
    with server.client() as client:
        assert client.keys("vfsd:*") == []


def test_a_server_with_every_commit_on_disk_loses_nothing_in_a_crash(
    make_server: ServerFactory, mount: MountFactory
) -> None:
    """``appendfsync always``, ``kill -9``, restart, twice: every acknowledged file is there and complete."""
    server = make_server(ServerOptions(appendonly=True, arguments=("--appendfsync", "always")))
    mounted = mount(server.url, "--store-timeout", "60")
    mounted.expected += OUTAGE
    made: list[str] = []
    stopping: list[bool] = []
    working = [PendingCall(partial(_make_files, mounted.path, f"w{number}", made, stopping)) for number in range(4)]
    for _ in range(2):
        _wait_for_more(made)
        server.kill()
        server.start()
    _wait_for_more(made)
    stopping.append(True)
    assert {each.outcome() for each in working} == {DONE}
    found = assert_store_matches(mounted)
    assert {os.fsencode(name) for name in made} == found.facts.keys() - {b""}
    assert all(found.facts[os.fsencode(name)].content == _content(name) for name in made)


def _wait_for_more(made: list[str]) -> None:
    enough = len(made) + 40
    wait_until(lambda: len(made) >= enough, "files to be made")


def _make_files(root: Path, prefix: str, made: list[str], stopping: list[bool]) -> None:
    number = 0
    while not stopping:
        name = f"{prefix}-{number}"
        (root / name).write_bytes(_content(name))
        made.append(name)
        number += 1


def _content(name: str) -> bytes:
    return name.encode() * 500


def test_a_busy_server_makes_a_call_slow_without_an_error(server: RedisServer, mount: MountFactory) -> None:
    """Another client runs an endless script: Redis answers BUSY until the script is killed."""
    mounted = mount(server.url, "--store-timeout", "60")
    (file,) = _mount_with_files(mounted)
    with server.client() as client, server.client() as other:
        client.config_set("busy-reply-threshold", 1)
        looping = PendingCall(lambda: _loop(other))
        wait_until(lambda: _is_busy(client), "the server to be busy")
        writing = PendingCall(lambda: write(file, NEW))
        wait_for_log(mounted, "trying again")
        assert not writing.has_returned
        client.script_kill()
        assert looping.outcome() == DONE
    assert writing.outcome() == DONE
    assert file.read_bytes() == NEW
    assert_store_matches(mounted)


def _loop(client: redis.Redis) -> None:
    try:
        client.eval("while true do end", 0)
    except redis.ResponseError:  # SCRIPT KILL has ended the script, as intended
        return


def _is_busy(client: redis.Redis) -> bool:
    try:
        client.ping()
    except redis.ResponseError:
        return True
    return False
