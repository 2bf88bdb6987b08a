"""Hydration: the tree is complete, whatever the order of the records and however often they come; damage is refused."""

import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from tests.support.stores import DurableBackend, SqliteBackend
from vfsd.errors import ScopeDamaged
from vfsd.scope.hydrate import hydrate
from vfsd.store.base import Batch, Claim, ClaimTerms, Store
from vfsd.store.memory import MemoryStore
from vfsd.store.owner import this_process
from vfsd.tree.change import CHUNK_SIZE, ROOT, Attributes, Change, Op, PutChunks, PutEntry, PutInode
from vfsd.tree.inode import FIRST_COOKIE

DIRECTORY = Attributes(stat.S_IFDIR | 0o755, 3, 0, 0, 0, 0, 1, 1, 1)
FILE = Attributes(stat.S_IFREG | 0o644, 1, 0, 0, 0, 0, 1, 1, 1)


class RepeatingStore(MemoryStore):
    """Yields every batch twice, as HSCAN may do while a hash grows (Redis documentation, SCAN, "guarantees")."""

    async def load(self, scope: str) -> AsyncIterator[Batch]:
        async for batch in super().load(scope):
            yield batch
            yield batch


async def _fill(store: Store, scope: str = "scope") -> Claim:
    """Make ``/b/a/file``. The entry of *a* has the first cookie of its directory, and the entry of *b* a later one."""
    claim = await store.claim(scope, this_process("/mnt"), ClaimTerms())
    ops = (
        PutInode(ROOT, DIRECTORY),
        PutInode(2, DIRECTORY),
        PutInode(3, DIRECTORY._replace(nlink=2)),
        PutInode(4, FILE),
        PutEntry(ROOT, b"b", 2, FIRST_COOKIE + 7),
        PutEntry(2, b"a", 3, FIRST_COOKIE),
        PutEntry(3, b"file", 4, FIRST_COOKIE),
    )
    await claim.commit(Change(ops, grows=True))
    return claim


def _ignore_progress(_done: int, _total: int) -> None:
    """Ignore progress."""


async def test_a_record_that_comes_twice_counts_once() -> None:
    store = RepeatingStore()
    await _fill(store)
    tree = await hydrate(store, "scope", _ignore_progress)
    assert tree.inodes[4].attributes == FILE
    assert list(tree.directory(3).entries) == [b"file"]


async def test_the_entry_of_a_directory_may_be_older_than_that_of_its_parent() -> None:
    store = MemoryStore()
    await _fill(store)
    tree = await hydrate(store, "scope", _ignore_progress)
    assert tree.is_below(3, 2)
    assert tree.inodes[2].attributes.nlink == 3


INVALID_NAMES = [b"a/b", b"a\0b", b".", b"..", b"n" * 256]
INVALID_CHUNKS = {
    "numbered below zero": {-1: b"x"},
    "beyond the end": {2: b"x"},
    "far beyond the end": {1 << 60: b"x"},
    "too long": {0: b"x" * (CHUNK_SIZE + 1)},
    "empty": {0: b""},
}


@pytest.mark.parametrize("name", INVALID_NAMES)
async def test_a_name_that_no_kernel_can_ask_for_is_damage(name: bytes) -> None:
    store = MemoryStore()
    claim = await _fill(store)
    ops = (PutInode(5, FILE), PutEntry(ROOT, name, 5, FIRST_COOKIE + 8))
    await claim.commit(Change(ops, grows=True))
    with pytest.raises(ScopeDamaged, match="no directory can hold such a name"):
        await hydrate(store, "scope", _ignore_progress)
    tree = await hydrate(store, "scope", _ignore_progress, salvage=True)
    assert list(tree.directory(ROOT).entries) == [b"b"]


@pytest.mark.parametrize("chunks", INVALID_CHUNKS.values(), ids=INVALID_CHUNKS)
async def test_a_chunk_with_a_wrong_size_or_outside_its_file_is_damage(chunks: dict[int, bytes]) -> None:
    store = MemoryStore()
    claim = await _fill(store)
    ops: tuple[Op, ...] = (
        PutInode(4, FILE._replace(size=2 * CHUNK_SIZE)),
        PutChunks(4, {1: b"sound", **chunks}),
    )
    await claim.commit(Change(ops, grows=True))
    with pytest.raises(ScopeDamaged, match=r"1 damaged records: chunk -?[0-9]+ of inode 4: "):
        await hydrate(store, "scope", _ignore_progress)
    tree = await hydrate(store, "scope", _ignore_progress, salvage=True)
    assert tree.inodes[4].chunks == {1: b"sound"}
    assert tree.content_bytes == len(b"sound")


async def test_a_last_chunk_longer_than_its_file_is_damage() -> None:
    """If the file grows later, its end must be zeros."""
    store = MemoryStore()
    claim = await _fill(store)
    ops: tuple[Op, ...] = (PutInode(4, FILE._replace(size=CHUNK_SIZE + 100)), PutChunks(4, {0: b"x", 1: b"x" * 101}))
    await claim.commit(Change(ops, grows=True))
    with pytest.raises(ScopeDamaged, match="1 damaged records: chunk 1 of inode 4: it lies outside the file's 16484"):
        await hydrate(store, "scope", _ignore_progress)
    tree = await hydrate(store, "scope", _ignore_progress, salvage=True)
    assert tree.inodes[4].chunks == {0: b"x"}


async def test_a_chunk_of_a_directory_is_damage() -> None:
    store = MemoryStore()
    claim = await _fill(store)
    await claim.commit(Change((PutChunks(3, {0: b"x"}),), grows=True))
    with pytest.raises(ScopeDamaged, match="chunk 0 of inode 3: "):
        await hydrate(store, "scope", _ignore_progress)


async def test_a_record_that_contradicts_another_is_named_by_its_key(
    durable_backend: DurableBackend, scope: str
) -> None:
    """The store understands each of these records: only hydration finds out, and it knows no keys."""
    keys = ("inodes field b'4'", "entries field b'3/lost'", "data:4 field b'7'")
    if isinstance(durable_backend, SqliteBackend):
        keys = ("inodes 4", "entries 3/lost", "chunks 4 7")
    store = durable_backend.open()
    claim = await _fill(store, scope)
    ops: tuple[Op, ...] = (
        PutInode(4, FILE._replace(nlink=2, size=1)),
        PutChunks(4, {7: b"x"}),
        PutEntry(3, b"lost", 99, FIRST_COOKIE + 1),
    )
    await claim.commit(Change(ops, grows=True))
    with pytest.raises(ScopeDamaged) as caught:
        await hydrate(store, scope, _ignore_progress)
    for key in keys:
        assert f"{key}: " in str(caught.value)
    await claim.release()
    await store.aclose()


@pytest.mark.parametrize("note", [(0, 0, 9), (4, -1, 9), (4, 9, 8), (2**62 + 1, 0, 9)], ids=str)
async def test_a_note_of_removed_chunks_that_is_out_of_range_is_damage(
    sqlite_backend: SqliteBackend, note: tuple[int, int, int]
) -> None:
    store = sqlite_backend.open()
    claim = await _fill(store)
    with closing(sqlite3.connect(sqlite_backend.path)) as file, file:
        file.execute("INSERT INTO dropped_chunks SELECT id, ?, ?, ? FROM scopes", note)
    with pytest.raises(ScopeDamaged, match=f"1 damaged records: dropped_chunks {note[0]} {note[1]}: "):
        await hydrate(store, "scope", _ignore_progress)
    await hydrate(store, "scope", _ignore_progress, salvage=True)
    await claim.release()
    await store.aclose()
