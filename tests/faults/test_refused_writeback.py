"""The store refuses what a shared mapping changed: the kernel drops it, and every reader sees what is stored."""

import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.test_fence import STORE_LOST
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.outcomes import OUTAGE, wait_until_writable
from tests.support.servers import RedisServer
from tests.support.store_comparison import assert_store_matches

STORED = b"stored" * 20_000


def _fill(server: RedisServer, mount: MountFactory, mounted: Mounted) -> None:
    with server.client() as client:
        client.config_set("maxmemory", 1)


def _kill(server: RedisServer, mount: MountFactory, mounted: Mounted) -> None:
    mounted.expected += OUTAGE
    server.kill()


def _fence(server: RedisServer, mount: MountFactory, mounted: Mounted) -> None:
    mounted.expected += STORE_LOST
    mount(server.url, "--take-over", scope=mounted.scope)


REFUSALS: dict[str, Callable[[RedisServer, MountFactory, Mounted], None]] = {
    "full": _fill,
    "killed": _kill,
    "fenced": _fence,
}


def _change_through_a_mapping(path: Path, refuse: Callable[[], None]) -> None:
    """Let *refuse* happen, then change all pages of a file by a shared mapping that was there before."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        assert mapping[:] == STORED
        refuse()
        for offset in range(0, len(STORED), mmap.PAGESIZE):
            mapping[offset : offset + 4] = b"LOST"
        with pytest.raises(OSError, match=r"error|full|space|Read-only"):
            mapping.flush()


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_reader_sees_what_is_stored_after_a_refused_writeback(
    server: RedisServer, mount: MountFactory, kind: str
) -> None:
    mounted = mount(server.url, "--store-timeout", "1")
    path = mounted.path / "file"
    path.write_bytes(STORED)
    _change_through_a_mapping(path, lambda: REFUSALS[kind](server, mount, mounted))
    wait_until(lambda: path.read_bytes() == STORED, "the kernel to drop what was refused")
    assert path.read_bytes() == STORED


def test_a_mapping_that_is_still_there_sees_what_is_stored_and_can_be_changed_again(
    server: RedisServer, mount: MountFactory
) -> None:
    mounted = mount(server.url)
    path = mounted.path / "file"
    path.write_bytes(STORED)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        _fill(server, mount, mounted)
        mapping[0:4] = b"LOST"
        with pytest.raises(OSError, match=r"space|error"):
            mapping.flush()
        wait_until(lambda: mapping[0:6] == b"stored", "the mapping to show what is stored")
        with server.client() as client:
            client.config_set("maxmemory", 0)
        wait_until_writable(mounted.path)
        mapping[0:4] = b"KEPT"
        mapping.flush()
        os.fsync(file.fileno())
    assert path.read_bytes()[:6] == b"KEPTed"
    assert_store_matches(mounted)
