"""A store that is frozen, gone or busy: slow calls within the deadline, EIO beyond it, reads throughout, recovery."""

import os
import time
from functools import partial
from pathlib import Path

import redis

from tests.faults.agreement import assert_agreement
from tests.faults.calls import DONE, OUTAGE, Pending, outcome, pending, wait_for_log, wait_until_writable, write
from tests.faults.conftest import ServerFactory
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.servers import RedisServer, ServerOptions

OLD, NEW = b"old content", b"new content"
WRITERS = 120
GENEROUS = 10.0
"""Seconds that a call with a deadline of one second may take on a busy machine."""


def _furnished(mounted: Mounted, files: int = 1) -> list[Path]:
    mounted.expected += OUTAGE
    paths = [mounted.path / f"file{number}" for number in range(files)]
    for path in paths:
        path.write_bytes(OLD)
    return paths


def test_frozen_shorter_than_the_deadline_is_a_slow_call(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url, "--store-timeout", "60")
    (file,) = _furnished(mounted)
    server.freeze()
    writing = Pending(lambda: write(file, NEW))
    making = Pending((mounted.path / "directory").mkdir)
    wait_until(lambda: pending(mounted) == 2, "two changes to wait")
    assert not writing.is_over
    assert not making.is_over
    server.thaw()
    assert writing.outcome() == making.outcome() == DONE
    assert_agreement(mounted)


def test_frozen_longer_is_eio_at_the_deadline_then_at_once_and_it_recovers(
    server: RedisServer, mount: MountFactory
) -> None:
    mounted = mount(server.url, "--store-timeout", "1")
    paths = _furnished(mounted, WRITERS)
    server.freeze()
    started = time.monotonic()
    writing = [Pending(partial(write, path, NEW)) for path in paths]
    assert {each.outcome() for each in writing} == {"EIO"}
    assert time.monotonic() - started < GENEROUS
    started = time.monotonic()
    assert {outcome((mounted.path / f"directory{number}").mkdir) for number in range(100)} == {"EIO"}
    assert time.monotonic() - started < GENEROUS  # a hundred, one after the other, in the time that one may take
    assert {path.read_bytes() for path in paths} == {OLD}
    assert len(os.listdir(mounted.path)) == WRITERS
    server.thaw()
    wait_until_writable(mounted.path)
    wait_until(lambda: outcome(lambda: write(paths[0], NEW)) == DONE, "what was in doubt to be settled")
    assert_agreement(mounted)


def test_readers_never_wait_for_hung_writers(server: RedisServer, mount: MountFactory) -> None:
    """More writers than pyfuse3 has workers by default hang on a frozen store: all reads end before it is thawed.

    All files are looked at first: at news of a file the kernel drops its cached pages, and waits for one being written.
    """
    mounted = mount(server.url, "--store-timeout", "60")
    paths = _furnished(mounted, WRITERS)
    assert {path.stat().st_size for path in paths} == {len(OLD)}
    read = mounted.path / "read"
    read.write_bytes(OLD * 1000)
    server.freeze()
    writing = [Pending(partial(write, path, NEW)) for path in paths]
    wait_until(lambda: pending(mounted) == WRITERS, "all writers to hang")
    fd = os.open(read, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    assert os.pread(fd, 1 << 20, 0) == OLD * 1000
    os.close(fd)
    assert len(os.listdir(mounted.path)) == WRITERS + 1
    assert not (mounted.path / "never looked up").exists()
    assert [path.stat().st_size for path in paths] == [len(OLD)] * WRITERS
    assert not any(each.is_over for each in writing)
    server.thaw()
    assert {each.outcome() for each in writing} == {DONE}
    assert_agreement(mounted)


def test_killed_and_started_again_empty_leaves_a_readable_mount(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url, "--store-timeout", "1")
    (file,) = _furnished(mounted)
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


def test_killed_under_load_with_every_commit_on_disk_loses_nothing(
    make_server: ServerFactory, mount: MountFactory
) -> None:
    """``appendfsync always``, ``kill -9``, restart, twice: every file that was acknowledged is there, whole."""
    server = make_server(ServerOptions(appendonly=True, arguments=("--appendfsync", "always")))
    mounted = mount(server.url, "--store-timeout", "60")
    mounted.expected += OUTAGE
    made: list[str] = []
    stopping: list[bool] = []
    working = [Pending(partial(_make_files, mounted.path, f"w{number}", made, stopping)) for number in range(4)]
    for _ in range(2):
        _wait_for_more(made)
        server.kill()
        server.start()
    _wait_for_more(made)
    stopping.append(True)
    assert {each.outcome() for each in working} == {DONE}
    found = assert_agreement(mounted)
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


def test_a_server_that_is_busy_makes_a_slow_call_and_no_error(server: RedisServer, mount: MountFactory) -> None:
    """Another client's endless script: Redis answers BUSY until somebody ends it."""
    mounted = mount(server.url, "--store-timeout", "60")
    (file,) = _furnished(mounted)
    with server.client() as client, server.client() as other:
        client.config_set("busy-reply-threshold", 1)
        looping = Pending(lambda: _loop(other))
        wait_until(lambda: _is_busy(client), "the server to be busy")
        writing = Pending(lambda: write(file, NEW))
        wait_for_log(mounted, "trying again")
        assert not writing.is_over
        client.script_kill()
        assert looping.outcome() == DONE
    assert writing.outcome() == DONE
    assert file.read_bytes() == NEW
    assert_agreement(mounted)


def _loop(client: redis.Redis) -> None:
    try:
        client.eval("while true do end", 0)
    except redis.ResponseError:  # killed, as it should be
        return


def _is_busy(client: redis.Redis) -> bool:
    try:
        client.ping()
    except redis.ResponseError:
        return True
    return False
