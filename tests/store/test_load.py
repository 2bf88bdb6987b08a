"""Loading a scope: the records are of one moment, and damaged records are reported."""

import pytest

from tests.support.stores import (
    Backend,
    DurableBackend,
    StoredRecords,
    claimed,
    directory,
    loading,
    regular,
    remote_owner,
    stored,
)
from vfsd.errors import FormatTooNew, ScopeChanged, ScopeDamaged, ScopeMissing
from vfsd.store.base import ClaimTerms
from vfsd.store.records import FORMAT
from vfsd.tree.change import DropInode, PutChunks, PutEntry, PutInode


async def test_a_missing_scope_is_reported_and_not_created(backend: Backend, scope: str) -> None:
    with pytest.raises(ScopeMissing, match=scope):
        await stored(backend, scope)
    with pytest.raises(ScopeMissing):
        await stored(backend, scope)  # loading has not created it


async def test_loading_needs_no_claim_and_does_not_end_one(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        await writer.commit(PutInode(2, regular()))
        for _ in range(2):
            assert set((await stored(backend, scope)).inodes) == {2}
        await writer.commit(PutInode(3, regular()))
    assert set((await stored(backend, scope)).inodes) == {2, 3}


async def test_thousands_of_records_are_loaded(backend: Backend, scope: str) -> None:
    inos = range(2, 2502)
    async with claimed(backend, scope) as writer:
        inodes = (PutInode(ino, regular(size=9, uid=ino)) for ino in inos)
        chunks = (PutChunks(ino, {0: b"%d" % ino}) for ino in inos)
        await writer.commit(*inodes, *chunks, *(PutEntry(1, b"%d" % ino, ino, ino + 1) for ino in inos))
    found = await stored(backend, scope)
    assert {ino: attributes.uid for ino, attributes in found.inodes.items()} == {ino: ino for ino in inos}
    assert found.entries == {(1, b"%d" % ino): (ino, ino + 1) for ino in inos}
    assert found.chunks == {(ino, 0): b"%d" % ino for ino in inos}


async def test_all_records_are_of_one_moment_or_loading_fails(backend: Backend, scope: str) -> None:
    inos = range(2, 1502)
    found = StoredRecords()
    async with claimed(backend, scope) as writer:
        chunks = (PutChunks(ino, {0: b"x"}) for ino in inos)
        await writer.commit(*(PutInode(ino, regular(size=1)) for ino in inos), *chunks)
        try:
            async with loading(backend, scope) as batches:
                async for batch in batches:
                    found.add(batch)
                    await writer.commit(DropInode(2, regular()), PutInode(9999, regular()), PutEntry(1, b"a", 9999, 3))
        except ScopeChanged:
            return  # this is allowed: the store has noticed the change
    assert set(found.inodes) == set(inos)
    assert set(found.chunks) == {(ino, 0) for ino in inos}
    assert not found.entries


async def test_loading_can_stop_early(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        await writer.commit(*(PutInode(ino, regular()) for ino in range(2, 2002)))
        async with loading(backend, scope) as batches:
            async for _ in batches:
                break
        await writer.commit(PutInode(9999, regular()))


async def test_damaged_records_are_reported_and_the_others_are_loaded(
    durable_backend: DurableBackend, scope: str
) -> None:
    async with claimed(durable_backend, scope) as writer:
        inodes = (PutInode(ino, regular(size=1 << 30)) for ino in (2, 3, 4))
        entries = (PutEntry(1, name, 2, 3) for name in (b"sound", b"damaged"))
        await writer.commit(PutInode(1, directory()), *inodes, *entries, PutChunks(2, {0: b"x", 5: b"y"}))
    keys = {
        durable_backend.corrupt_inode(scope, 3),
        durable_backend.corrupt_entry(scope, 1, b"damaged"),
        durable_backend.corrupt_chunk(scope, 2, 5),
    }
    found = await stored(durable_backend, scope)
    assert (set(found.inodes), set(found.entries), set(found.chunks)) == ({1, 2, 4}, {(1, b"sound")}, {(2, 0)})
    assert {key for key in keys for damage in found.damages if key in damage.key} == keys
    assert len(found.damages) == len(keys)
    assert all(damage.why for damage in found.damages)


async def test_a_newer_format_is_refused_and_not_changed(durable_backend: DurableBackend, scope: str) -> None:
    async with claimed(durable_backend, scope) as writer:
        await writer.commit(PutInode(2, regular()))
    durable_backend.set_format(scope, FORMAT + 1)
    for terms in (ClaimTerms(), ClaimTerms(create=False, take_over=True)):
        with pytest.raises(FormatTooNew, match=f"{scope}.*format {FORMAT + 1}.*upgrade vfsd"):
            async with claimed(durable_backend, scope, terms=terms):
                pass
    with pytest.raises(FormatTooNew, match=scope):
        await stored(durable_backend, scope)
    durable_backend.set_format(scope, FORMAT)
    async with claimed(durable_backend, scope):
        assert set((await stored(durable_backend, scope)).inodes) == {2}


async def test_a_format_that_never_existed_is_damage(durable_backend: DurableBackend, scope: str) -> None:
    async with claimed(durable_backend, scope):
        pass
    durable_backend.set_format(scope, 0)
    with pytest.raises(ScopeDamaged, match=scope):
        await stored(durable_backend, scope)
    store = durable_backend.open()
    with pytest.raises(ScopeDamaged, match=scope):
        await store.claim(scope, remote_owner(), ClaimTerms())
    await store.drop(scope)
    await store.aclose()
