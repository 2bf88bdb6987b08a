"""The scopes of a store as a whole: listing them, destroying one, and how much room there is."""

from collections.abc import Callable

import pytest

from tests.store.test_claim import dead_process
from tests.support.stores import DurablePlace, Place, mounted, regular, stored, stranger
from vfsd import clock
from vfsd.errors import Fenced, ScopeBusy, ScopeMissing
from vfsd.store.base import ClaimTerms, ScopeSummary
from vfsd.tree.change import DropInode, PutChunks, PutEntry, PutInode


async def listed(place: Place, *names: str) -> list[ScopeSummary]:
    """Return what a listing says of *names*."""
    store = place.open()
    try:
        return [summary for summary in await store.scopes() if summary.name in names]
    finally:
        await store.aclose()


async def drop(place: Place, scope: str) -> None:
    store = place.open()
    try:
        await store.drop(scope)
    finally:
        await store.aclose()


async def test_scopes_are_listed_by_name_with_what_they_hold(place: Place, new_scope: Callable[[], str]) -> None:
    names = [new_scope() for _ in range(3)]
    before = clock.now()
    for files, name in enumerate(names):
        async with mounted(place, name) as mount:
            await mount.commit(*(PutInode(ino, regular()) for ino in range(2, 2 + files)))
    found = await listed(place, *names)
    assert [summary.name for summary in found] == sorted(names)
    assert {summary.name: summary.files for summary in found} == {name: files for files, name in enumerate(names)}
    assert all(before <= summary.created_ns <= clock.now() for summary in found)
    assert all(summary.owner is None for summary in found)


async def test_a_listing_says_who_holds_a_scope(place: Place, scope: str) -> None:
    owner = stranger("/mnt/here")
    async with mounted(place, scope, owner) as mount:
        await mount.commit(PutInode(2, regular()), PutInode(3, regular()))
        await mount.commit(DropInode(3, regular()), grows=False)
        (summary,) = await listed(place, scope)
        assert (summary.owner, summary.files) == (owner, 1)
    (summary,) = await listed(place, scope)
    assert summary.owner is None


async def test_a_destroyed_scope_is_gone_and_others_are_not(place: Place, scope: str) -> None:
    neighbour = f"{scope}-2"
    for name in (scope, neighbour):
        async with mounted(place, name) as mount:
            await mount.commit(PutInode(2, regular()), PutEntry(1, b"a", 2, 3), PutChunks(2, {0: b"x"}))
    await drop(place, scope)
    with pytest.raises(ScopeMissing):
        await stored(place, scope)
    assert [summary.name for summary in await listed(place, scope, neighbour)] == [neighbour]
    found = await stored(place, neighbour)
    assert (set(found.inodes), set(found.entries), set(found.chunks)) == ({2}, {(1, b"a")}, {(2, 0)})


async def test_a_destroyed_scope_leaves_nothing_behind(durable: DurablePlace, scope: str) -> None:
    async with mounted(durable, scope) as mount:
        await mount.commit(*(PutInode(ino, regular()) for ino in range(2, 1202)))
        await mount.commit(PutEntry(1, b"a", 2, 3), *(PutChunks(ino, {0: b"x", 9: b"y"}) for ino in range(2, 1202)))
        await mount.commit(DropInode(3, regular()), DropInode(4, regular()), grows=False)
    await drop(durable, scope)
    assert durable.remains(scope) == []


async def test_a_scope_made_anew_holds_nothing_of_the_old_one(place: Place, scope: str) -> None:
    async with mounted(place, scope) as mount:
        await mount.commit(PutInode(2, regular()), PutEntry(1, b"a", 2, 3), PutChunks(2, {0: b"x"}))
    await drop(place, scope)
    async with mounted(place, scope) as mount:
        assert mount.claim.created
        await mount.commit(PutInode(2, regular()))
    found = await stored(place, scope)
    assert (set(found.inodes), found.entries, found.chunks) == ({2}, {}, {})


async def test_a_mounted_scope_is_not_destroyed(place: Place, scope: str) -> None:
    async with mounted(place, scope, stranger("/mnt/here")) as mount:
        await mount.commit(PutInode(2, regular()))
        with pytest.raises(ScopeBusy, match=r"far\.example, pid 4711, at /mnt/here"):
            await drop(place, scope)
        await mount.commit(PutInode(3, regular()))
    assert set((await stored(place, scope)).inodes) == {2, 3}


async def test_a_missing_scope_cannot_be_destroyed(place: Place, scope: str) -> None:
    with pytest.raises(ScopeMissing, match=scope):
        await drop(place, scope)


async def test_the_scope_of_an_ended_process_is_destroyed_at_once(place: Place, scope: str) -> None:
    store = place.open()
    await store.claim(scope, dead_process(), ClaimTerms())
    await store.aclose()
    await drop(place, scope)
    assert not await listed(place, scope)


@pytest.mark.parametrize("made_anew", [False, True])
async def test_a_frozen_owner_writes_nothing_after_its_scope_was_destroyed(
    durable: DurablePlace, scope: str, made_anew: bool
) -> None:
    async with mounted(durable, scope) as frozen:
        await frozen.commit(PutInode(2, regular()))
        durable.end_lease(scope)
        await drop(durable, scope)
        if made_anew:
            async with mounted(durable, scope):
                pass
        with pytest.raises(Fenced, match=scope):
            await frozen.commit(PutInode(3, regular()), PutEntry(1, b"a", 3, 3), PutChunks(3, {0: b"x"}))
    if made_anew:
        found = await stored(durable, scope)
        assert (found.inodes, found.entries, found.chunks) == ({}, {}, {})
    else:
        assert not await listed(durable, scope)


async def test_there_is_room(place: Place, scope: str) -> None:
    async with mounted(place, scope) as mount:
        capacity = await mount.store.capacity()
    assert 0 < capacity.free <= capacity.total
