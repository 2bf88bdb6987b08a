"""The lease of a claim: who renews it, and what happens in Redis after it has ended."""

import threading
import time
from collections.abc import Callable

import pytest
import trio
import trio.testing

from tests.support.servers import RedisServer
from tests.support.stores import TIMEOUT, DurableBackend, RedisBackend, claimed, regular, remote_owner, stored
from vfsd.errors import Fenced, ScopeBusy, ScopeDamaged
from vfsd.store.base import LEASE_SECONDS, ClaimTerms
from vfsd.store.lease import Lease
from vfsd.store.redis.claim import RedisClaim
from vfsd.tree.change import PutInode


@pytest.fixture(params=["redis", "valkey"])
def redis_backend(request: pytest.FixtureRequest) -> RedisBackend:
    """Return a backend on each kind of server."""
    server: RedisServer = request.getfixturevalue(f"{request.param}_server")
    return RedisBackend(server)


def block_until(condition: Callable[[], object]) -> None:
    """Keep the event loop busy until *condition* is true."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline, "gave up waiting"
        time.sleep(0.01)  # the interval between two checks, in which the loop must not run


def let_lapse(backend: RedisBackend, scope: str, claim: object) -> None:
    """End the lease, and let the claim see that it has ended."""
    assert isinstance(claim, RedisClaim)
    backend.end_lease(scope)
    claim._connection.lease.ends = 0.0  # noqa: SLF001 (otherwise the test would have to wait for the lease)


async def test_the_lease_is_renewed_while_the_event_loop_is_busy(durable_backend: DurableBackend, scope: str) -> None:
    async with claimed(durable_backend, scope) as writer:
        await trio.testing.wait_all_tasks_blocked()
        first_end = durable_backend.lease_end(scope)
        block_until(lambda: durable_backend.lease_end(scope) > first_end + LEASE_SECONDS * 10**9 / 4)
        await writer.commit(PutInode(2, regular()))


async def test_a_claim_whose_lease_has_ended_is_claimed_again_by_the_next_commit(
    redis_backend: RedisBackend, scope: str
) -> None:
    async with claimed(redis_backend, scope) as writer:
        let_lapse(redis_backend, scope, writer.claim)
        await writer.commit(PutInode(2, regular()))
        with pytest.raises(ScopeBusy):
            async with claimed(redis_backend, scope):
                pass
        await writer.commit(PutInode(3, regular()))
    assert set((await stored(redis_backend, scope)).inodes) == {2, 3}


@pytest.mark.parametrize("released", [False, True])
async def test_a_claim_whose_lease_has_ended_is_lost_if_another_owner_has_claimed_since(
    redis_backend: RedisBackend, scope: str, released: bool
) -> None:
    async with claimed(redis_backend, scope) as first:
        let_lapse(redis_backend, scope, first.claim)
        store = redis_backend.open()
        second = await store.claim(scope, remote_owner("/mnt/second"), ClaimTerms())
        if released:
            await second.release()
        with pytest.raises(Fenced, match="and released by another owner" if released else "/mnt/second"):
            await first.commit(PutInode(2, regular()))
        await store.aclose()
    assert not (await stored(redis_backend, scope)).inodes


async def test_a_lease_without_an_owner_is_damage_with_a_remedy(redis_backend: RedisBackend, scope: str) -> None:
    async with claimed(redis_backend, scope):
        pass
    with redis_backend.client() as client:
        client.set(f"vfsd:{{{scope}}}:lease", "nobody")
    with pytest.raises(ScopeDamaged, match=r"owner record cannot be read.*--take-over"):
        async with claimed(redis_backend, scope):
            pass
    async with claimed(redis_backend, scope, terms=ClaimTerms(take_over=True)) as writer:
        await writer.commit(PutInode(2, regular()))


async def test_a_lease_is_not_renewed_for_an_event_loop_that_hangs() -> None:
    renewed = threading.Event()
    count = 0

    def renew() -> None:
        nonlocal count
        count += 1
        renewed.set()

    lease: Lease[None] = Lease("scope", renew, every=0.001, hung_after=0.05)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lease.keep)
        await trio.testing.wait_all_tasks_blocked()
        block_until(renewed.is_set)
        before = -1

        def has_stopped() -> bool:
            nonlocal before
            same, before = count == before, count
            time.sleep(0.2)  # many renewals long; an end that is seen too early makes nothing fail
            return same

        block_until(has_stopped)
        renewed.clear()
        while not renewed.is_set():  # noqa: ASYNC110 (the thread cannot set an event of trio)
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()


async def test_the_answer_that_a_claim_is_lost_ends_the_renewals() -> None:
    lease = Lease("scope", lambda: "fenced", every=0.001)
    with trio.fail_after(TIMEOUT):
        assert await lease.keep() == "fenced"
