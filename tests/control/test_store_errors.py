"""Changes that the store refuses: the client gets an errno, and memory and store are unchanged."""

import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.control.conftest import Connect
from tests.support.mounted import PATIENCE, MountFactory, mounting, wait_until
from tests.support.outcomes import DONE, OUTAGE, PendingCall, outcome, wait_until_writable
from tests.support.proxy import Direction, Proxy
from tests.support.servers import RedisServer, ServerOptions, redis_program
from tests.support.store_comparison import assert_store_matches
from vfsd import Vfs

CHANGES: dict[str, Callable[[Vfs], object]] = {
    "replace": lambda vfs: vfs.write_file("file", b"new"),
    "create": lambda vfs: vfs.write_file("a/b/new", b"new", parents=True),
    "append": lambda vfs: vfs.append_file("file", b"more"),
    "copy": lambda vfs: vfs.copy_file("file", "copy"),
    "move": lambda vfs: vfs.move_file("file", "directory/moved"),
    "delete": lambda vfs: vfs.delete_file("file"),
    "mkdir": lambda vfs: vfs.mkdir("new"),
    "rmdir": lambda vfs: vfs.rmdir("directory", recursive=True),
}


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer(redis_program(), ServerOptions()) as server:
        yield server


@pytest.fixture
def proxy(server: RedisServer) -> Iterator[Proxy]:
    with Proxy(server.socket) as proxy:
        yield proxy


@pytest.fixture
def mount(tmp_path_factory: pytest.TempPathFactory, proxy: Proxy) -> Iterator[MountFactory]:
    """Yield a factory of mounts, which are unmounted before the proxy and its server end."""
    with mounting(tmp_path_factory.mktemp("mounts")) as factory:
        yield factory


def test_an_unreachable_store(mount: MountFactory, server: RedisServer, proxy: Proxy, connected: Connect) -> None:
    mounted = mount(proxy.url, "--store-timeout", "1")
    mounted.expected += OUTAGE
    vfs = connected(mounted)
    vfs.write_file("file", b"old")
    vfs.write_file("directory/below", b"old", parents=True)
    before = assert_store_matches(mounted, server.url)
    with proxy.refusing():
        for change in CHANGES.values():
            with pytest.raises(OSError, match="store") as caught:
                change(vfs)
            assert caught.value.errno == errno.EIO
        assert vfs.read_file("file") == b"old"
        assert assert_store_matches(mounted, server.url) == before
    wait_until_writable(mounted.path)
    for change in CHANGES.values():
        wait_until(partial(_succeeds, change, vfs), "changes to work again")
        if not vfs.exists("file"):
            vfs.write_file("file", b"old")
    assert_store_matches(mounted, server.url)


def _succeeds(change: Callable[[Vfs], object], vfs: Vfs) -> bool:
    return outcome(partial(change, vfs)) == DONE


def test_a_lost_answer_leaves_the_change_in_doubt_until_it_is_settled(
    mount: MountFactory, server: RedisServer, proxy: Proxy, connected: Connect
) -> None:
    mounted = mount(proxy.url, "--store-timeout", "1")
    mounted.expected += OUTAGE
    vfs = connected(mounted)
    vfs.write_file("file", b"old")
    assert (mounted.path / "file").read_bytes() == b"old"
    cut = proxy.cut_commit(Direction.REPLY, 0, lasts=True)
    writing = PendingCall(partial(vfs.write_file, "file", b"new content"))
    assert cut.done.wait(PATIENCE)
    with proxy.refusing():
        assert writing.outcome() == "EIO"
        assert vfs.read_file("file") == (mounted.path / "file").read_bytes() == b"old"
    wait_until(lambda: (mounted.path / "file").read_bytes() == b"new content", "the change to be settled")
    assert_store_matches(mounted, server.url)


def test_a_change_beyond_the_limits_of_the_scope_is_refused(
    mount: MountFactory, server: RedisServer, connected: Connect
) -> None:
    mounted = mount(server.url, "--max-bytes", "100K", "--max-files", "4", "--max-file-bytes", "60K")
    vfs = connected(mounted)
    vfs.write_file("one", os.urandom(60 << 10))
    before = assert_store_matches(mounted)
    refused: list[tuple[Callable[[], object], int]] = [
        (lambda: vfs.write_file("two", os.urandom(50 << 10)), errno.ENOSPC),
        (lambda: vfs.copy_file("one", "two"), errno.ENOSPC),
        (lambda: vfs.write_file("one", os.urandom(61 << 10)), errno.EFBIG),
        (lambda: vfs.append_file("one", b"x"), errno.EFBIG),
        (lambda: vfs.write_file("a/b/c", b"", parents=True), errno.ENOSPC),
    ]
    for call, number in refused:
        with pytest.raises(OSError, match=os.strerror(number)) as caught:
            call()
        assert caught.value.errno == number
    assert assert_store_matches(mounted) == before
    vfs.write_file("one", os.urandom(50 << 10))
    vfs.write_file("two", os.urandom(50 << 10))
    vfs.write_file("two", b"")
    assert_store_matches(mounted)


def test_a_full_server_accepts_changes_that_shrink(tmp_path: Path, connected: Connect) -> None:
    with (
        RedisServer(redis_program(), ServerOptions(maxmemory=32 << 20)) as server,
        mounting(tmp_path) as factory,
    ):
        mounted = factory(server.url)
        vfs = connected(mounted)
        vfs.write_file("d/first", os.urandom(1 << 20), parents=True)
        with pytest.raises(OSError, match="memory") as caught:
            _fill(vfs)
        assert caught.value.errno == errno.ENOSPC
        assert_store_matches(mounted)
        vfs.write_file("d/first", b"")
        vfs.delete_file("d/first")
        vfs.rmdir("d", recursive=True)
        vfs.write_file("again", b"room")
        assert_store_matches(mounted)


def _fill(vfs: Vfs) -> None:
    for number in range(64):
        vfs.write_file(f"d/{number}", os.urandom(1 << 20))
