"""A commit without an answer: its caller gets an error and may continue. The change is later stored or absent."""

import os
from functools import partial

from tests.faults.conftest import ProxyFactory
from tests.support.mounted import MountFactory, wait_until
from tests.support.outcomes import DONE, OUTAGE, PendingCall, outcome, wait_for_log, write
from tests.support.proxy import Direction
from tests.support.servers import RedisServer
from tests.support.store_comparison import assert_store_matches
from tests.support.syscalls import closing_fd

FENCED = r"claimed by .*; this mount stays readable"


def test_an_append_to_an_open_file_follows_the_one_that_turned_out_to_be_stored(
    mount: MountFactory, server: RedisServer, make_proxy: ProxyFactory
) -> None:
    """The kernel appends at the end that it knows, so it must get the new size before it writes again."""
    proxy = make_proxy(server)
    mounted = mount(proxy.url, "--store-timeout", "1")
    mounted.expected += OUTAGE
    file = mounted.path / "log"
    for size in (10, 4096):
        records = [letter * size for letter in (b"a", b"b", b"c")]
        file.write_bytes(records[0])
        with closing_fd(os.open(file, os.O_WRONLY | os.O_APPEND)) as fd:
            cut = proxy.cut_commit(Direction.REPLY, 0, lasts=True)
            appending = PendingCall(partial(os.write, fd, records[1]))
            assert cut.done.wait(60)
            with proxy.refusing():
                assert appending.outcome() == "EIO"
            wait_until(partial(_appends, fd, records[2]), "appending to work again")
        assert file.read_bytes() == b"".join(records)
        assert_store_matches(mounted, server.url)


def _appends(fd: int, record: bytes) -> bool:
    return outcome(partial(os.write, fd, record)) == DONE


def test_a_commit_in_doubt_fails_with_eio_if_the_scope_is_claimed(
    mount: MountFactory, server: RedisServer, make_proxy: ProxyFactory
) -> None:
    """It is stored, and the next owner has it. EROFS would mean that nothing was changed."""
    proxy = make_proxy(server)
    first = mount(proxy.url, "--store-timeout", "60")
    first.expected += [*OUTAGE, FENCED]
    (first.path / "file").write_bytes(b"old")
    cut = proxy.cut_commit(Direction.REPLY, 0, lasts=True)
    writing = PendingCall(partial(write, first.path / "file", b"new"))
    assert cut.done.wait(60)
    with proxy.refusing():
        second = mount(server.url, "--take-over", scope=first.scope)
        assert (second.path / "file").read_bytes() == b"new"
    assert writing.outcome() == "EIO"
    wait_for_log(first, "claimed by")
    assert outcome((first.path / "directory").mkdir) == "EROFS"
    assert (first.path / "file").read_bytes() == b"old"
