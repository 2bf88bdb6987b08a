"""A file of thousands of chunks is cut in half: one change for everybody, also if the daemon dies right after it."""

import os

import pytest

from tests.support.mounted import MountFactory, wait_until
from tests.support.outcomes import write
from tests.support.servers import RedisServer
from tests.support.store_comparison import assert_store_matches
from vfsd.tree.change import CHUNK_SIZE

CHUNKS = 4000
OLD = bytes(range(1, 251)) * (CHUNKS * CHUNK_SIZE // 250)
HALF = len(OLD) // 2 + 100


@pytest.mark.parametrize("crash", [False, True])
def test_a_large_truncation_survives_and_nothing_of_the_old_content_comes_back(
    mount: MountFactory, server: RedisServer, crash: bool
) -> None:
    mounted = mount(server.url)
    file = mounted.path / "file"
    file.write_bytes(OLD)
    ino, keys = file.stat().st_ino, f"vfsd:{{{mounted.scope}}}:"
    os.truncate(file, HALF)
    if crash:
        mounted.kill()
        mounted.start()
    assert file.read_bytes() == OLD[:HALF]
    os.truncate(file, len(OLD))
    write(file, b"new", HALF + 10 * CHUNK_SIZE)
    expected = OLD[:HALF] + bytes(10 * CHUNK_SIZE) + b"new"
    expected += bytes(len(OLD) - len(expected))
    assert file.read_bytes() == expected
    assert_store_matches(mounted)
    with server.client() as client:
        wait_until(lambda: not client.exists(keys + "leftovers"), "the old chunks to be deleted")
        assert client.hlen(f"{keys}data:{ino}") == HALF // CHUNK_SIZE + 2
    assert_store_matches(mounted)
    mounted.remount()
    assert file.read_bytes() == expected
