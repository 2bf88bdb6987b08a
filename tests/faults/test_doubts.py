"""A commit that had no answer: whoever was told of a failure may go on, and finds it whole or absent."""

import os
from functools import partial

from tests.faults.agreement import assert_agreement
from tests.faults.calls import DONE, OUTAGE, Pending, outcome, wait_for_log, write
from tests.faults.conftest import Connector
from tests.support.mounted import MountFactory, wait_until
from tests.support.proxy import Way
from tests.support.servers import RedisServer
from tests.support.syscalls import closing_fd

FENCED = r"claimed by .*; this mount stays readable"


def test_an_append_to_an_open_file_follows_the_one_that_turned_out_to_be_stored(
    mount: MountFactory, server: RedisServer, proxied: Connector
) -> None:
    """The kernel appends where it takes the end to be: it has to be told before it may write again."""
    proxy = proxied(server)
    mounted = mount(proxy.url, "--store-timeout", "1")
    mounted.expected += OUTAGE
    file = mounted.path / "log"
    for size in (10, 4096):
        records = [letter * size for letter in (b"a", b"b", b"c")]
        file.write_bytes(records[0])
        with closing_fd(os.open(file, os.O_WRONLY | os.O_APPEND)) as fd:
            cut = proxy.cut_commit(Way.REPLY, 0, lasts=True)
            appending = Pending(partial(os.write, fd, records[1]))
            assert cut.done.wait(60)
            with proxy.refusing():
                assert appending.outcome() == "EIO"
            wait_until(partial(_appends, fd, records[2]), "appending to work again")
        assert file.read_bytes() == b"".join(records)
        assert_agreement(mounted, server.url)


def _appends(fd: int, record: bytes) -> bool:
    return outcome(partial(os.write, fd, record)) == DONE


def test_a_commit_whose_scope_is_claimed_before_its_fate_is_known_fails_as_in_doubt(
    mount: MountFactory, server: RedisServer, proxied: Connector
) -> None:
    """It has been stored, and the next owner has it: EROFS would say that nothing has happened."""
    proxy = proxied(server)
    first = mount(proxy.url, "--store-timeout", "60")
    first.expected += [*OUTAGE, FENCED]
    (first.path / "file").write_bytes(b"old")
    cut = proxy.cut_commit(Way.REPLY, 0, lasts=True)
    writing = Pending(partial(write, first.path / "file", b"new"))
    assert cut.done.wait(60)
    with proxy.refusing():
        second = mount(server.url, "--take-over", scope=first.scope)
        assert (second.path / "file").read_bytes() == b"new"
    assert writing.outcome() == "EIO"
    wait_for_log(first, "claimed by")
    assert outcome((first.path / "directory").mkdir) == "EROFS"
    assert (first.path / "file").read_bytes() == b"old"
