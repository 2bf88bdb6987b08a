"""A truncation of a large file in Redis: it reads as one change at once, and its chunks are deleted in slices."""

from collections.abc import Callable, Iterator

import pytest
import redis
import trio
from hypothesis import HealthCheck, given, settings

from tests.store.random_changes import Step, random_steps
from tests.store.test_random_changes import run_steps
from tests.store.test_scopes import drop
from tests.support.servers import RedisServer, redis_program
from tests.support.stores import (
    TIMEOUT,
    MemoryBackend,
    RedisBackend,
    ScopeWriter,
    claimed,
    regular,
    remote_owner,
    stored,
)
from vfsd.store.base import ClaimTerms
from vfsd.store.redis import leftovers
from vfsd.tree.change import DropChunks, DropInode, PutChunks, PutInode

CHUNKS, KEPT = 5000, 1000
TRUNCATE = (PutInode(2, regular()), DropChunks(2, tuple(range(KEPT, CHUNKS))))


@pytest.fixture(params=["redis", "valkey"])
def server(request: pytest.FixtureRequest) -> RedisServer:
    """Return each kind of server."""
    running: RedisServer = request.getfixturevalue(f"{request.param}_server")
    return running


@pytest.fixture
def client(server: RedisServer) -> Iterator[redis.Redis]:
    """Return a client of the server."""
    with server.client() as client:
        yield client


def notes(scope: str) -> str:
    return f"vfsd:{{{scope}}}:leftovers"


def chunks_in(client: redis.Redis, scope: str) -> int:
    """Return how many chunks of file 2 the server has."""
    count: int = client.hlen(f"vfsd:{{{scope}}}:data:2")
    return count


async def wait_until_swept(client: redis.Redis, scope: str) -> None:
    with trio.fail_after(TIMEOUT):
        while client.exists(notes(scope)):  # noqa: ASYNC110 (the notes are in the store: no event tells)
            await trio.sleep(0.005)


async def claim_unkept(server: RedisServer, scope: str) -> ScopeWriter:
    """Claim *scope* without a task that keeps the claim: so nothing is deleted by itself."""
    store = RedisBackend(server).open()
    return ScopeWriter(store, await store.claim(scope, remote_owner(), ClaimTerms(take_over=True)))


async def write_large_file(writer: ScopeWriter) -> None:
    await writer.commit(PutInode(2, regular()))
    for first in range(0, CHUNKS, 1000):
        await writer.commit(PutChunks(2, dict.fromkeys(range(first, first + 1000), b"old")))


async def test_a_large_truncation_reads_as_one_change_before_anything_is_deleted(
    server: RedisServer, client: redis.Redis, scope: str
) -> None:
    writer = await claim_unkept(server, scope)
    await write_large_file(writer)
    await writer.commit(*TRUNCATE, grows=False)
    assert chunks_in(client, scope) == CHUNKS
    assert client.hlen(notes(scope)) == (CHUNKS - KEPT) // leftovers.SLICE
    found = await stored(RedisBackend(server), scope)
    assert set(found.chunks) == {(2, number) for number in range(KEPT)}
    await writer.store.aclose()


async def test_the_chunks_are_deleted_in_slices_beside_other_commits(
    server: RedisServer, client: redis.Redis, scope: str
) -> None:
    async with claimed(RedisBackend(server), scope) as writer:
        await write_large_file(writer)
        client.config_resetstat()
        await writer.commit(*TRUNCATE, grows=False)
        while client.exists(notes(scope)):
            await writer.commit(PutInode(3, regular()))
        assert chunks_in(client, scope) == KEPT
        deletions = client.info("commandstats")["cmdstat_hdel"]["calls"]
        assert deletions == 2 * (CHUNKS - KEPT) // leftovers.SLICE
    assert set((await stored(RedisBackend(server), scope)).inodes) == {2, 3}


async def test_a_chunk_that_is_written_again_stays(server: RedisServer, client: redis.Redis, scope: str) -> None:
    writer = await claim_unkept(server, scope)
    await write_large_file(writer)
    await writer.commit(*TRUNCATE, grows=False)
    await writer.commit(PutChunks(2, {KEPT + 500: b"new", 4999: b"last"}))
    expected = {**{(2, number): b"old" for number in range(KEPT)}, (2, KEPT + 500): b"new", (2, 4999): b"last"}
    assert (await stored(RedisBackend(server), scope)).chunks == expected
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.claim.keep)
        await wait_until_swept(client, scope)
        nursery.cancel_scope.cancel()
    assert (await stored(RedisBackend(server), scope)).chunks == expected
    assert chunks_in(client, scope) == len(expected)
    await writer.store.aclose()


async def test_the_next_owner_deletes_what_a_crash_has_left(
    server: RedisServer, client: redis.Redis, scope: str
) -> None:
    writer = await claim_unkept(server, scope)
    await write_large_file(writer)
    await writer.commit(*TRUNCATE, grows=False)
    await writer.store.aclose()
    async with claimed(RedisBackend(server), scope, terms=ClaimTerms(take_over=True)) as second:
        found = await stored(RedisBackend(server), scope)
        assert set(found.chunks) == {(2, number) for number in range(KEPT)}
        assert chunks_in(client, scope) == CHUNKS, "something was deleted before the first commit"
        await second.commit(PutChunks(2, {2000: b"new"}))
        await wait_until_swept(client, scope)
        assert chunks_in(client, scope) == KEPT + 1
    assert (await stored(RedisBackend(server), scope)).chunks == {**found.chunks, (2, 2000): b"new"}


async def test_a_scope_with_leftovers_can_be_destroyed(server: RedisServer, scope: str) -> None:
    writer = await claim_unkept(server, scope)
    await write_large_file(writer)
    await writer.commit(*TRUNCATE, grows=False)
    await writer.commit(DropInode(2, regular()), grows=False)
    await writer.claim.release()
    await writer.store.aclose()
    await drop(RedisBackend(server), scope)
    assert RedisBackend(server).leftover_data(scope) == []


async def test_leftovers_of_a_full_server_are_deleted_too(scope: str) -> None:
    with RedisServer(redis_program()) as server, server.client() as client:
        async with claimed(RedisBackend(server), scope) as writer:
            await write_large_file(writer)
            client.config_set("maxmemory", 1)
            await writer.commit(*TRUNCATE, grows=False)
            await wait_until_swept(client, scope)
            assert chunks_in(client, scope) == KEPT


@pytest.mark.parametrize(
    "note", [b"", b"1000-", b"1000-999", b"1001-1002", b"1000-9999999999999", b"x-y", b"1000-1002 7"]
)
async def test_a_note_that_cannot_be_read_is_damage(
    server: RedisServer, client: redis.Redis, scope: str, note: bytes
) -> None:
    async with claimed(RedisBackend(server), scope) as writer:
        await writer.commit(PutInode(2, regular()))
    client.hset(notes(scope), b"2/1000", note)
    (damage,) = (await stored(RedisBackend(server), scope)).damages
    assert damage.key == f"{notes(scope)} field b'2/1000'"
    async with claimed(RedisBackend(server), scope) as writer:
        await writer.commit(PutInode(3, regular()))
    assert client.hget(notes(scope), "2/1000") == note


@given(steps=random_steps())
@settings(
    max_examples=40,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_the_records_are_those_of_the_memory_store_if_every_truncation_leaves_something(
    server: RedisServer, new_scope: Callable[[], str], steps: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "SLICE", 1)
    model, scope = MemoryBackend(), new_scope()
    await run_steps(model, scope, steps)
    await run_steps(RedisBackend(server), scope, steps)
    assert await stored(RedisBackend(server), scope) == await stored(model, scope)
