"""Reading a scope back: as one moment left it, and honest about what cannot be read."""

import pytest

from tests.support.stores import DurablePlace, Place, Stored, directory, loading, mounted, regular, stored, stranger
from vfsd.errors import FormatTooNew, ScopeChanged, ScopeDamaged, ScopeMissing
from vfsd.store.base import ClaimTerms
from vfsd.store.records import FORMAT
from vfsd.tree.change import DropInode, PutChunks, PutEntry, PutInode


async def test_a_missing_scope_is_missing(place: Place, scope: str) -> None:
    with pytest.raises(ScopeMissing, match=scope):
        await stored(place, scope)
    with pytest.raises(ScopeMissing):
        await stored(place, scope)  # asking has not made it


async def test_reading_needs_no_claim_and_disturbs_none(place: Place, scope: str) -> None:
    async with mounted(place, scope) as mount:
        await mount.commit(PutInode(2, regular()))
        for _ in range(2):
            assert set((await stored(place, scope)).inodes) == {2}
        await mount.commit(PutInode(3, regular()))
    assert set((await stored(place, scope)).inodes) == {2, 3}


async def test_thousands_of_records_come_back(place: Place, scope: str) -> None:
    inos = range(2, 2502)
    async with mounted(place, scope) as mount:
        inodes = (PutInode(ino, regular(size=9, uid=ino)) for ino in inos)
        chunks = (PutChunks(ino, {0: b"%d" % ino}) for ino in inos)
        await mount.commit(*inodes, *chunks, *(PutEntry(1, b"%d" % ino, ino, ino) for ino in inos))
    found = await stored(place, scope)
    assert {ino: attributes.uid for ino, attributes in found.inodes.items()} == {ino: ino for ino in inos}
    assert found.entries == {(1, b"%d" % ino): (ino, ino) for ino in inos}
    assert found.chunks == {(ino, 0): b"%d" % ino for ino in inos}


async def test_what_is_read_is_of_one_moment(place: Place, scope: str) -> None:
    inos = range(2, 1502)
    found = Stored()
    async with mounted(place, scope) as mount:
        chunks = (PutChunks(ino, {0: b"x"}) for ino in inos)
        await mount.commit(*(PutInode(ino, regular(size=1)) for ino in inos), *chunks)
        try:
            async with loading(place, scope) as batches:
                async for batch in batches:
                    found.add(batch)
                    await mount.commit(DropInode(2, regular()), PutInode(9999, regular()), PutEntry(1, b"a", 9999, 3))
        except ScopeChanged:
            return  # said so: as good
    assert set(found.inodes) == set(inos)
    assert set(found.chunks) == {(ino, 0) for ino in inos}
    assert not found.entries


async def test_reading_can_be_broken_off(place: Place, scope: str) -> None:
    async with mounted(place, scope) as mount:
        await mount.commit(*(PutInode(ino, regular()) for ino in range(2, 2002)))
        async with loading(place, scope) as batches:
            async for _ in batches:
                break
        await mount.commit(PutInode(9999, regular()))


async def test_damaged_records_are_named_and_the_rest_is_read(durable: DurablePlace, scope: str) -> None:
    async with mounted(durable, scope) as mount:
        inodes = (PutInode(ino, regular(size=1 << 30)) for ino in (2, 3, 4))
        entries = (PutEntry(1, name, 2, 3) for name in (b"sound", b"spoilt"))
        await mount.commit(PutInode(1, directory()), *inodes, *entries, PutChunks(2, {0: b"x", 5: b"y"}))
    keys = {
        durable.spoil_inode(scope, 3),
        durable.spoil_entry(scope, 1, b"spoilt"),
        durable.spoil_chunk(scope, 2, 5),
    }
    found = await stored(durable, scope)
    assert (set(found.inodes), set(found.entries), set(found.chunks)) == ({1, 2, 4}, {(1, b"sound")}, {(2, 0)})
    assert {key for key in keys for damage in found.damages if key in damage.key} == keys
    assert len(found.damages) == len(keys)
    assert all(damage.why for damage in found.damages)


async def test_a_newer_format_is_refused_and_left_alone(durable: DurablePlace, scope: str) -> None:
    async with mounted(durable, scope) as mount:
        await mount.commit(PutInode(2, regular()))
    durable.set_format(scope, FORMAT + 1)
    for terms in (ClaimTerms(), ClaimTerms(create=False, take_over=True)):
        with pytest.raises(FormatTooNew, match=f"{scope}.*format {FORMAT + 1}.*upgrade vfsd"):
            async with mounted(durable, scope, terms=terms):
                pass
    with pytest.raises(FormatTooNew, match=scope):
        await stored(durable, scope)
    durable.set_format(scope, FORMAT)
    async with mounted(durable, scope):
        assert set((await stored(durable, scope)).inodes) == {2}


async def test_a_format_that_never_was_is_damage(durable: DurablePlace, scope: str) -> None:
    async with mounted(durable, scope):
        pass
    durable.set_format(scope, 0)
    with pytest.raises(ScopeDamaged, match=scope):
        await stored(durable, scope)
    store = durable.open()
    with pytest.raises(ScopeDamaged, match=scope):
        await store.claim(scope, stranger(), ClaimTerms())
    await store.drop(scope)
    await store.aclose()
