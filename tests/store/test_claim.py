"""Claims: who may write a scope, when a lease ends, and how a former owner is fenced."""

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import trio

from tests.support.stores import TIMEOUT, Backend, DurableBackend, claimed, directory, regular, remote_owner, stored
from vfsd import clock
from vfsd.errors import Fenced, ScopeBusy, ScopeMissing
from vfsd.store.base import LEASE_SECONDS, ClaimTerms
from vfsd.store.owner import Owner, from_json
from vfsd.tree.change import Limits, PutInode

EXISTING, TAKE_OVER = ClaimTerms(create=False), ClaimTerms(take_over=True)


def dead_owner() -> Owner:
    """Return an owner on this host whose process has ended without releasing its scope."""
    script = "from vfsd.store.owner import this_process; print(this_process('/mnt/dead').to_json())"
    return from_json(subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True).stdout)


async def test_a_new_scope_is_created_once(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as first:
        assert first.claim.created
        assert first.claim.scope == scope
    async with claimed(backend, scope) as second:
        assert not second.claim.created


async def test_a_missing_scope_is_not_created_if_the_terms_forbid_it(backend: Backend, scope: str) -> None:
    with pytest.raises(ScopeMissing, match=scope):
        async with claimed(backend, scope, terms=EXISTING):
            pass
    async with claimed(backend, scope) as writer:
        assert writer.claim.created


async def test_an_existing_scope_can_be_claimed_if_the_terms_forbid_to_create_one(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope):
        pass
    async with claimed(backend, scope, terms=EXISTING) as writer:
        assert not writer.claim.created


async def test_a_claim_fails_and_names_the_living_owner_which_goes_on(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope, remote_owner("/mnt/first")) as first:
        with pytest.raises(ScopeBusy, match=r"far\.example, pid 4711, at /mnt/first, since \d+ s ago"):
            async with claimed(backend, scope):
                pass
        await first.commit(PutInode(2, regular()))
    assert set((await stored(backend, scope)).inodes) == {2}


async def test_take_over_fences_a_living_owner(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as first, claimed(backend, scope, terms=TAKE_OVER) as second:
        assert not second.claim.created
        await second.commit(PutInode(2, regular()))
        with pytest.raises(Fenced):
            await first.commit(PutInode(3, regular()))
        await second.commit(PutInode(4, regular()))
    assert set((await stored(backend, scope)).inodes) == {2, 4}


async def test_the_error_of_a_fenced_owner_names_the_new_owner(durable_backend: DurableBackend, scope: str) -> None:
    new = remote_owner("/mnt/new")
    async with claimed(durable_backend, scope) as first, claimed(durable_backend, scope, new, TAKE_OVER):
        for _ in range(2):
            with pytest.raises(Fenced, match=r"far\.example, pid 4711, at /mnt/new"):
                await first.commit(PutInode(3, regular()))


async def test_a_fenced_owner_stays_fenced_after_the_new_owner_has_released(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as first:
        async with claimed(backend, scope, terms=TAKE_OVER):
            pass
        with pytest.raises(Fenced):
            await first.commit(PutInode(3, regular()))
    assert not (await stored(backend, scope)).inodes


async def test_the_release_of_a_fenced_owner_does_not_end_the_new_claim(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as first, claimed(backend, scope, terms=TAKE_OVER) as second:
        await first.claim.release()
        with pytest.raises(ScopeBusy):
            async with claimed(backend, scope):
                pass
        await second.commit(PutInode(2, regular()))


async def test_a_claim_undoes_the_scope_that_it_has_created(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        await writer.commit(PutInode(1, directory()))
        await writer.claim.undo()
        assert scope not in [found.name for found in await writer.store.scopes()]
        await writer.claim.undo()
        with pytest.raises(Fenced):
            await writer.commit(PutInode(2, regular()))
    async with claimed(backend, scope) as again:
        assert again.claim.created
    assert not (await stored(backend, scope)).inodes


async def test_the_undoing_of_a_fenced_owner_leaves_the_scope_to_the_new_one(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as first, claimed(backend, scope, terms=TAKE_OVER) as second:
        await first.claim.undo()
        await second.commit(PutInode(1, directory()))
    assert (await stored(backend, scope)).inodes.keys() == {1}


async def test_a_released_scope_can_be_claimed_at_once(backend: Backend, scope: str) -> None:
    for _ in range(3):
        store = backend.open()
        claim = await store.claim(scope, remote_owner(), ClaimTerms())
        await claim.release()
        await claim.release()
        await store.aclose()


async def test_a_scope_whose_owner_process_has_ended_can_be_claimed_at_once(backend: Backend, scope: str) -> None:
    store = backend.open()
    await store.claim(scope, dead_owner(), ClaimTerms())
    await store.aclose()
    async with claimed(backend, scope) as writer:
        await writer.commit(PutInode(2, regular()))
    assert set((await stored(backend, scope)).inodes) == {2}


async def test_a_scope_whose_lease_has_ended_can_be_claimed(durable_backend: DurableBackend, scope: str) -> None:
    frozen = durable_backend.open()
    await frozen.claim(scope, remote_owner(), ClaimTerms())
    durable_backend.end_lease(scope)
    async with claimed(durable_backend, scope) as writer:
        await writer.commit(PutInode(2, regular()))
    await frozen.aclose()


@pytest.fixture
def living_owner() -> Iterator[Owner]:
    """Yield an owner on this host whose process lives."""
    script = (
        "from vfsd.store.owner import this_process; print(this_process('/mnt/lives').to_json(), flush=True); input()"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield from_json(process.stdout.readline())
        process.kill()


def end_lease(backend: DurableBackend, scope: str, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """End the lease as a step of the clock does that *how* names: of the store's clock, or of this host's."""
    if how == "ended":
        backend.end_lease(scope)
    else:
        step_ns = {"ahead": 3600 * 10**9, "back": -3600 * 10**9}[how]
        monkeypatch.setattr(clock, "now", lambda: time.time_ns() + step_ns)


@pytest.mark.parametrize("how", ["ended", "ahead", "back"])
async def test_an_owner_that_lives_on_this_host_has_its_scope_whatever_the_clock_says(
    durable_backend: DurableBackend, scope: str, living_owner: Owner, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async with claimed(durable_backend, scope, living_owner) as first:
        end_lease(durable_backend, scope, monkeypatch, how)
        store = durable_backend.open()
        with pytest.raises(ScopeBusy, match=r"at /mnt/lives.*--take-over"):
            await store.claim(scope, remote_owner(), ClaimTerms())
        with pytest.raises(ScopeBusy, match=r"at /mnt/lives") as refused:
            await store.drop(scope)
        assert "--take-over" not in str(refused.value)
        assert {summary.name: summary.owner for summary in await store.scopes()}[scope] == living_owner
        await first.commit(PutInode(2, regular()))
        await store.claim(scope, remote_owner(), TAKE_OVER)
        with pytest.raises(Fenced):
            await first.commit(PutInode(3, regular()))
        await store.aclose()


async def test_a_process_that_lives_does_not_hold_a_scope_that_it_has_released(
    durable_backend: DurableBackend, scope: str, living_owner: Owner
) -> None:
    async with claimed(durable_backend, scope, living_owner):
        pass
    async with claimed(durable_backend, scope):
        pass
    store = durable_backend.open()
    await store.drop(scope)
    await store.aclose()


async def keep_and_lose(backend: DurableBackend, scope: str) -> None:
    """Keep a claim until its lease is renewed, take the scope over, and wait until ``keep`` returns."""
    store = backend.open()
    claim = await store.claim(scope, remote_owner(), ClaimTerms())
    first_end = backend.lease_end(scope)
    ended = trio.Event()

    async def keep() -> None:
        await claim.keep()
        ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep)
        while backend.lease_end(scope) < first_end + LEASE_SECONDS * 10**9 / 4:  # noqa: ASYNC110 (the lease is in the store: no event tells)
            await trio.sleep(0.05)
        assert not ended.is_set()
        async with claimed(backend, scope, terms=TAKE_OVER):
            await ended.wait()
        with pytest.raises(Fenced):
            claim.raise_if_unusable()
    await store.aclose()


async def test_keep_renews_the_lease_and_returns_when_the_scope_is_taken_over(
    durable_backends: list[DurableBackend], scope: str
) -> None:
    with trio.fail_after(TIMEOUT):
        async with trio.open_nursery() as nursery:
            for backend in durable_backends:
                nursery.start_soon(keep_and_lose, backend, scope)


async def test_a_claim_that_is_known_to_be_lost_raises_without_a_commit(
    durable_backend: DurableBackend, scope: str
) -> None:
    async with claimed(durable_backend, scope) as first:
        first.claim.raise_if_unusable()
        async with claimed(durable_backend, scope, remote_owner("/mnt/new"), TAKE_OVER):
            with pytest.raises(Fenced):
                await first.commit(PutInode(3, regular()))
            with pytest.raises(Fenced, match="/mnt/new"):
                first.claim.raise_if_unusable()


async def test_limits_stay_until_they_are_changed(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope, terms=ClaimTerms(limits=Limits(max_bytes=10**15, max_files=5))) as writer:
        assert writer.claim.limits == Limits(10**15, 5, None)
    async with claimed(backend, scope) as writer:
        assert writer.claim.limits == Limits(10**15, 5, None)
    changed = ClaimTerms(create=False, limits=Limits(max_files=0, max_file_bytes=7))
    async with claimed(backend, scope, terms=changed) as writer:
        assert (writer.claim.limits.max_bytes, writer.claim.limits.max_file_bytes) == (10**15, 7)
        assert not writer.claim.limits.max_files
    async with claimed(backend, scope) as writer:
        assert (writer.claim.limits.max_bytes, writer.claim.limits.max_file_bytes) == (10**15, 7)
        assert not writer.claim.limits.max_files
