"""A link to Redis that is closed while a commit waits for its answer: the commit ends, and nobody else is disturbed."""

import socket

import pytest
import trio
import trio.testing

from tests.support.servers import RedisServer, ServerOptions, redis_program
from tests.support.stores import remote_owner
from vfsd.errors import Fenced, InDoubt
from vfsd.store.base import ClaimTerms, StoreOptions
from vfsd.store.redis.claim import RedisClaim
from vfsd.store.redis.resp import ConnectionLost, RespConnection, RespRequest
from vfsd.store.url import open_store
from vfsd.tree.change import ROOT, Attributes, Change, PutInode

HOUR = 3600.0
ROOT_DIRECTORY = Change((PutInode(ROOT, Attributes(0o40755, 2, 0, 0, 0, 0, 1, 1, 1)),), grows=True)


async def test_a_call_ends_when_its_connection_is_closed_and_its_descriptor_is_free() -> None:
    ours, theirs = socket.socketpair()
    connection, number = RespConnection(ours), ours.fileno()

    async def call() -> None:
        request = RespRequest()
        request.add(b"PING")
        with pytest.raises(ConnectionLost, match="closed"):
            await connection.call(request, trio.current_time() + HOUR)

    with theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            connection.close()
            one, other = socket.socketpair()
            assert number in {one.fileno(), other.fileno()}
            with one, other:
                one.send(b"x")
                other.send(b"y")
                for each in (one, other):
                    await trio.lowlevel.wait_readable(each)  # BusyResourceError if the call still waits for it


async def test_a_commit_that_is_under_way_when_the_scope_is_lost_ends_in_doubt_at_once(scope: str) -> None:
    with RedisServer(redis_program(), ServerOptions()) as server:
        store = open_store(server.url, StoreOptions(timeout=HOUR))
        claim = await store.claim(scope, remote_owner(), ClaimTerms())
        assert isinstance(claim, RedisClaim)

        async def commit() -> None:
            with pytest.raises(InDoubt):
                await claim.commit(ROOT_DIRECTORY)

        server.freeze()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(commit)
            await trio.testing.wait_all_tasks_blocked()
            claim._connection.lose(Fenced("another owner"))  # noqa: SLF001 (as the lease does when it finds that out)
        server.thaw()
        with pytest.raises(Fenced, match="another owner"):
            await claim.commit(ROOT_DIRECTORY)
        claim.close()
        await store.aclose()
