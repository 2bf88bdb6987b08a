"""Commits: a new reader finds every operation and every value, also of commits at the same time."""

import random
import stat
import struct

import pytest
import trio

from tests.support.stores import Backend, DurableBackend, claimed, directory, regular, stored
from vfsd.store.group import GROUP_BYTES
from vfsd.tree.change import (
    CHUNK_SIZE,
    ROOT,
    Attributes,
    DropChunks,
    DropEntry,
    DropInode,
    PutChunks,
    PutEntry,
    PutInode,
)


async def test_a_new_scope_is_empty(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope):
        found = await stored(backend, scope)
    assert (found.inodes, found.entries, found.chunks, found.damages) == ({}, {}, {}, [])
    assert found.next_ino == ROOT + 1


async def test_each_operation_is_stored(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        await writer.commit(
            PutInode(1, directory()), PutInode(2, regular()), PutEntry(1, b"a", 2, 3), PutChunks(2, {0: b"x", 7: b"y"})
        )
        await writer.commit(PutInode(3, regular(uid=5)), PutEntry(1, b"b", 3, 4), PutChunks(3, {1: b"z"}))
        await writer.commit(PutInode(2, regular(gid=6)), PutChunks(2, {7: b"yy", 8: b"w"}), DropChunks(2, (0,)))
        await writer.commit(PutEntry(1, b"c", 2, 5), DropEntry(1, b"a"))
        await writer.commit(DropEntry(1, b"b"), DropInode(3, regular()), grows=False)
    found = await stored(backend, scope)
    assert found.inodes == {1: directory(), 2: regular(gid=6)}
    assert found.entries == {(1, b"c"): (2, 5)}
    assert found.chunks == {(2, 7): b"yy", (2, 8): b"w"}
    assert not found.damages


async def test_a_change_can_be_committed_twice(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        for _ in range(2):
            await writer.commit(PutInode(2, regular()), PutEntry(1, b"a", 2, 3), PutChunks(2, {0: b"x", 1: b"y"}))
        for _ in range(2):
            await writer.commit(DropChunks(2, (1, 5)), DropEntry(1, b"none"), DropInode(9, regular()), grows=False)
    found = await stored(backend, scope)
    assert (set(found.inodes), set(found.entries), set(found.chunks)) == ({2}, {(1, b"a")}, {(2, 0)})


async def test_an_empty_change_can_be_committed(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        await writer.commit()
        await writer.commit(DropChunks(2, ()))
    assert not (await stored(backend, scope)).chunks


async def test_dropping_all_chunks_of_an_inode_keeps_those_of_others(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        for ino in (2, 22):
            await writer.commit(PutInode(ino, regular()), PutChunks(ino, {0: b"x", 1: b"y", 1 << 40: b"z"}))
        await writer.commit(DropChunks(2, None), grows=False)
    assert set((await stored(backend, scope)).chunks) == {(22, 0), (22, 1), (22, 1 << 40)}


async def test_dropping_an_inode_drops_its_chunks(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        await writer.commit(PutInode(2, regular()), PutChunks(2, {0: b"old", 1: b"old"}))
        await writer.commit(DropInode(2, regular()), grows=False)
        await writer.commit(PutInode(2, regular()), PutChunks(2, {1: b"new"}))
    assert (await stored(backend, scope)).chunks == {(2, 1): b"new"}


async def test_a_name_can_have_any_byte_except_slash_and_nul(backend: Backend, scope: str) -> None:
    allowed = bytes(byte for byte in range(1, 256) if byte != ord("/"))
    names = [bytes([byte]) for byte in allowed]
    names += [allowed, allowed[::-1], b"n" * 255, b"\n", b"\xff\xfe", "Ünïcödé".encode(), b"{scope}", b" 1 2", b"%d"]
    names = sorted(set(names) - {b"."})
    async with claimed(backend, scope) as writer:
        await writer.commit(*(PutEntry(1, name, 2, number + 3) for number, name in enumerate(names)))
        await writer.commit(*(DropEntry(1, bytes([byte])) for byte in b"\r\n\t :*?"), grows=False)
    found = await stored(backend, scope)
    expected = {(1, name): (2, number + 3) for number, name in enumerate(names)}
    assert found.entries == {key: value for key, value in expected.items() if key[1] not in b"\r\n\t :*?"}


@pytest.mark.parametrize(
    "attributes",
    [
        regular(atime_ns=-1, mtime_ns=1 - 2**63, ctime_ns=2**63 - 1),
        regular(size=2**63 - 1, nlink=2**32 - 1, uid=2**32 - 2, gid=2**32 - 2),
        regular(mode=0o107777),
        regular(mode=0o020666, rdev=2**32 - 1),
        regular(mode=0o120777, target=b"../\xff\n" + b"t" * 4090, size=4095),
        regular(xattrs=((b"user.empty", b""), (b"user." + b"n" * 250, bytes(range(256)) * 200))),
        Attributes(stat.S_IFIFO, 1, 0, 0, 0, 0, 0, 0, 0),
    ],
    ids=["times", "numbers", "mode", "device", "symlink", "xattrs", "zeros"],
)
async def test_attributes_are_read_as_they_were_written(backend: Backend, scope: str, attributes: Attributes) -> None:
    async with claimed(backend, scope) as writer:
        await writer.commit(PutInode(2, attributes))
    assert (await stored(backend, scope)).inodes == {2: attributes}


async def test_large_numbers_are_stored(backend: Backend, scope: str) -> None:
    ino, cookie, number = 2**60, 2**61, 2**49 - 1
    async with claimed(backend, scope) as writer:
        await writer.commit(PutInode(ino, regular()), PutChunks(ino, {number: b"x"}))
        await writer.commit(PutEntry(ino - 1, b"a", ino, cookie))
    found = await stored(backend, scope)
    assert found.entries == {(ino - 1, b"a"): (ino, cookie)}
    assert found.chunks == {(ino, number): b"x"}
    assert found.next_ino == ino + 1


async def test_a_change_can_be_larger_than_a_group(backend: Backend, scope: str, rng: random.Random) -> None:
    chunks = {number: rng.randbytes(CHUNK_SIZE) for number in range(GROUP_BYTES // CHUNK_SIZE + 10)}
    async with claimed(backend, scope) as writer:
        await writer.commit(PutInode(2, regular()), PutChunks(2, chunks), PutEntry(1, b"big", 2, 3))
        await writer.commit(DropChunks(2, tuple(range(0, len(chunks), 2))), grows=False)
    found = await stored(backend, scope)
    assert found.chunks == {(2, number): chunk for number, chunk in chunks.items() if number % 2}


async def test_many_chunks_can_be_dropped_at_once(durable_backend: DurableBackend, scope: str) -> None:
    numbers = tuple(range(20_000))
    async with claimed(durable_backend, scope) as writer:
        await writer.commit(PutInode(2, regular()), PutChunks(2, dict.fromkeys(numbers, b"x")))
        await writer.commit(DropChunks(2, numbers[1:]), grows=False)
    assert set((await stored(durable_backend, scope)).chunks) == {(2, 0)}


async def test_commits_at_the_same_time_are_all_stored(backend: Backend, scope: str) -> None:
    inos = range(2, 402)
    async with claimed(backend, scope) as writer:
        async with trio.open_nursery() as nursery:
            for ino in inos:
                content = {0: b"%d" % ino, 1: bytes([ino % 256]) * (CHUNK_SIZE if ino % 7 == 0 else 10)}
                ops = PutInode(ino, regular(uid=ino)), PutEntry(1, b"%d" % ino, ino, ino + 1), PutChunks(ino, content)
                nursery.start_soon(writer.commit, *ops)
        assert writer.claim.pending == 0
    found = await stored(backend, scope)
    assert {ino: attributes.uid for ino, attributes in found.inodes.items()} == {ino: ino for ino in inos}
    assert found.entries == {(1, b"%d" % ino): (ino, ino + 1) for ino in inos}
    assert {ino: found.chunks[ino, 0] for ino in inos} == {ino: b"%d" % ino for ino in inos}
    assert len(found.chunks) == 2 * len(inos)


async def test_nothing_is_stored_of_a_change_that_cannot_be_encoded(
    durable_backend: DurableBackend, scope: str
) -> None:
    async with claimed(durable_backend, scope) as writer:
        with pytest.raises(struct.error):
            await writer.commit(PutInode(2, regular()), PutEntry(1, b"a", 2, 3), PutInode(3, regular(uid=-1)))
        await writer.commit(PutInode(4, regular()))
    found = await stored(durable_backend, scope)
    assert (set(found.inodes), found.entries) == ({4}, {})


async def test_scopes_do_not_see_each_other(backend: Backend, scope: str) -> None:
    names = [scope, f"{scope}-2", f"{scope}:inodes", f"{scope}+"]
    for number, name in enumerate(names, 2):
        async with claimed(backend, name) as writer:
            await writer.commit(PutInode(number, regular()), PutEntry(1, b"a", number, 3), PutChunks(number, {0: b"x"}))
    for number, name in enumerate(names, 2):
        found = await stored(backend, name)
        assert (set(found.inodes), set(found.chunks)) == ({number}, {(number, 0)})
        assert found.entries == {(1, b"a"): (number, 3)}


async def test_next_ino_stays_above_every_number_that_was_used(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        await writer.commit(PutInode(50, regular()))
        await writer.commit(DropInode(50, regular()), grows=False)
    async with claimed(backend, scope) as writer:
        assert (await stored(backend, scope)).next_ino == 51
        await writer.commit(PutInode(7, regular()))
    assert (await stored(backend, scope)).next_ino == 51


async def test_sync_and_release_lose_nothing(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        await writer.claim.sync()
        await writer.commit(PutInode(2, regular()))
        await writer.claim.sync()
        assert set((await stored(backend, scope)).inodes) == {2}
    assert set((await stored(backend, scope)).inodes) == {2}
