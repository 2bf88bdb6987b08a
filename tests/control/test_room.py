"""``--max-memory`` holds for what a client sends and asks for, before anything of it is looked at."""

import errno
from collections.abc import Callable

import pytest

from tests.control.conftest import Connect
from tests.support.files import refused
from tests.support.mounted import MountFactory
from tests.support.servers import RedisServer
from vfsd import Vfs

LARGE = bytes(60 << 20)
REQUESTS: list[Callable[[Vfs], object]] = [
    lambda vfs: vfs.write_file("missing", LARGE, expected_mtime_ns=1),
    lambda vfs: vfs.append_file("no/such/directory", LARGE),
    lambda vfs: vfs.seed_skill("skill", "no front matter", files={"large": LARGE}),
]


@pytest.mark.parametrize("request_large", REQUESTS)
def test_a_request_for_which_the_daemon_has_no_room(
    mount: MountFactory, redis_server: RedisServer, connected: Connect, request_large: Callable[[Vfs], object]
) -> None:
    """Each request would be refused for another reason too; but memory comes first, while the request arrives."""
    vfs = connected(mount(redis_server.url, "--max-memory", "90m"))
    with refused(errno.ENOSPC):
        request_large(vfs)
    assert vfs.list_all_paths() == []
    assert vfs.write_file("small", b"x").created
