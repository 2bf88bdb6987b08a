"""Who may write a scope: claims, leases, and what becomes of a former owner."""

import subprocess
import sys

import pytest
import trio

from tests.support.stores import PATIENCE, DurablePlace, Place, mounted, regular, stored, stranger
from vfsd.errors import Fenced, ScopeBusy, ScopeMissing
from vfsd.store.base import LEASE_SECONDS, ClaimTerms
from vfsd.store.owner import Owner, from_json
from vfsd.tree.change import Limits, PutInode

EXISTING, BY_FORCE = ClaimTerms(create=False), ClaimTerms(take_over=True)


def dead_process() -> Owner:
    """Return a daemon of this host that has ended, without releasing anything."""
    script = "from vfsd.store.owner import this_process; print(this_process('/mnt/dead').to_json())"
    return from_json(subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True).stdout)


async def test_a_new_scope_is_created_once(place: Place, scope: str) -> None:
    async with mounted(place, scope) as first:
        assert first.claim.created
        assert first.claim.scope == scope
    async with mounted(place, scope) as second:
        assert not second.claim.created


async def test_a_missing_scope_is_not_created_against_the_terms(place: Place, scope: str) -> None:
    with pytest.raises(ScopeMissing, match=scope):
        async with mounted(place, scope, terms=EXISTING):
            pass
    async with mounted(place, scope) as mount:
        assert mount.claim.created


async def test_an_existing_scope_satisfies_the_terms(place: Place, scope: str) -> None:
    async with mounted(place, scope):
        pass
    async with mounted(place, scope, terms=EXISTING) as mount:
        assert not mount.claim.created


async def test_a_living_owner_is_named_and_left_alone(place: Place, scope: str) -> None:
    async with mounted(place, scope, stranger("/mnt/first")) as first:
        with pytest.raises(ScopeBusy, match=r"far\.example, pid 4711, at /mnt/first, since \d+ s ago"):
            async with mounted(place, scope):
                pass
        await first.commit(PutInode(2, regular()))
    assert set((await stored(place, scope)).inodes) == {2}


async def test_a_living_owner_can_be_taken_over(place: Place, scope: str) -> None:
    async with mounted(place, scope) as first, mounted(place, scope, terms=BY_FORCE) as second:
        assert not second.claim.created
        await second.commit(PutInode(2, regular()))
        with pytest.raises(Fenced):
            await first.commit(PutInode(3, regular()))
        await second.commit(PutInode(4, regular()))
    assert set((await stored(place, scope)).inodes) == {2, 4}


async def test_a_fenced_owner_hears_who_has_the_scope(durable: DurablePlace, scope: str) -> None:
    new = stranger("/mnt/new")
    async with mounted(durable, scope) as first, mounted(durable, scope, new, BY_FORCE):
        for _ in range(2):
            with pytest.raises(Fenced, match=r"far\.example, pid 4711, at /mnt/new"):
                await first.commit(PutInode(3, regular()))


async def test_a_fenced_owner_stays_fenced_when_the_new_one_has_gone(place: Place, scope: str) -> None:
    async with mounted(place, scope) as first:
        async with mounted(place, scope, terms=BY_FORCE):
            pass
        with pytest.raises(Fenced):
            await first.commit(PutInode(3, regular()))
    assert not (await stored(place, scope)).inodes


async def test_release_ends_nobody_elses_claim(place: Place, scope: str) -> None:
    async with mounted(place, scope) as first, mounted(place, scope, terms=BY_FORCE) as second:
        await first.claim.release()
        with pytest.raises(ScopeBusy):
            async with mounted(place, scope):
                pass
        await second.commit(PutInode(2, regular()))


async def test_a_released_scope_can_be_claimed_at_once(place: Place, scope: str) -> None:
    for _ in range(3):
        store = place.open()
        claim = await store.claim(scope, stranger(), ClaimTerms())
        await claim.release()
        await claim.release()
        await store.aclose()


async def test_an_owner_whose_process_has_ended_is_taken_over_at_once(place: Place, scope: str) -> None:
    store = place.open()
    await store.claim(scope, dead_process(), ClaimTerms())
    await store.aclose()
    async with mounted(place, scope) as mount:
        await mount.commit(PutInode(2, regular()))
    assert set((await stored(place, scope)).inodes) == {2}


async def test_an_owner_not_heard_of_for_long_is_taken_over(durable: DurablePlace, scope: str) -> None:
    frozen = durable.open()
    await frozen.claim(scope, stranger(), ClaimTerms())
    durable.end_lease(scope)
    async with mounted(durable, scope) as mount:
        await mount.commit(PutInode(2, regular()))
    await frozen.aclose()


async def keep_and_lose(place: DurablePlace, scope: str) -> None:
    """Keep a claim until its lease has been put off, let someone else take it, and wait until it is given up."""
    store = place.open()
    claim = await store.claim(scope, stranger(), ClaimTerms())
    given = place.lease_end(scope)
    ended = trio.Event()

    async def keep() -> None:
        await claim.keep()
        ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep)
        while place.lease_end(scope) < given + LEASE_SECONDS * 10**9 / 4:  # noqa: ASYNC110 (no event: it is far away)
            await trio.sleep(0.05)
        assert not ended.is_set()
        async with mounted(place, scope, terms=BY_FORCE):
            await ended.wait()
        with pytest.raises(Fenced):
            claim.raise_if_unusable()
    await store.aclose()


async def test_a_kept_claim_outlives_its_lease_and_ends_when_it_is_taken(
    durables: list[DurablePlace], scope: str
) -> None:
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for place in durables:
                nursery.start_soon(keep_and_lose, place, scope)


async def test_a_claim_known_to_be_lost_is_refused_before_anything_is_sent(durable: DurablePlace, scope: str) -> None:
    async with mounted(durable, scope) as first:
        first.claim.raise_if_unusable()
        async with mounted(durable, scope, stranger("/mnt/new"), BY_FORCE):
            with pytest.raises(Fenced):
                await first.commit(PutInode(3, regular()))
            with pytest.raises(Fenced, match="/mnt/new"):
                first.claim.raise_if_unusable()


async def test_limits_stay_until_they_are_changed(place: Place, scope: str) -> None:
    async with mounted(place, scope, terms=ClaimTerms(limits=Limits(max_bytes=10**15, max_files=5))) as mount:
        assert mount.claim.limits == Limits(10**15, 5, None)
    async with mounted(place, scope) as mount:
        assert mount.claim.limits == Limits(10**15, 5, None)
    changed = ClaimTerms(create=False, limits=Limits(max_files=0, max_file_bytes=7))
    async with mounted(place, scope, terms=changed) as mount:
        assert (mount.claim.limits.max_bytes, mount.claim.limits.max_file_bytes) == (10**15, 7)
        assert not mount.claim.limits.max_files
    async with mounted(place, scope) as mount:
        assert (mount.claim.limits.max_bytes, mount.claim.limits.max_file_bytes) == (10**15, 7)
        assert not mount.claim.limits.max_files
