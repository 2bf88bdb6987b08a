"""SQLite deletes large content in slices, after the commit. Nobody sees a difference, even after a crash."""

import random
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import trio

from tests.support.stores import TIMEOUT, ScopeWriter, SqliteBackend, claimed, regular, remote_owner, stored
from vfsd.errors import ScopeMissing
from vfsd.store.base import ClaimTerms
from vfsd.store.sqlite import leftovers
from vfsd.store.sqlite.store import SqliteStore
from vfsd.tree.change import DropChunks, DropInode, PutChunks, PutInode

MANY = 10 * leftovers.SLICE
OLD, NEW = b"old", b"new"
TAKE_OVER = ClaimTerms(take_over=True)


@pytest.fixture
def file(tmp_path: Path) -> SqliteBackend:
    """Return a backend whose file does not exist yet."""
    return SqliteBackend(tmp_path / "scopes.db")


@asynccontextmanager
async def unswept(file: SqliteBackend, scope: str, terms: ClaimTerms = TAKE_OVER) -> AsyncIterator[ScopeWriter]:
    """Claim *scope* without keeping the claim: nothing is deleted later, as if the daemon were killed in between."""
    store = file.open()
    try:
        yield ScopeWriter(store, await store.claim(scope, remote_owner(), terms))
    finally:
        await store.aclose()


async def put(writer: ScopeWriter, ino: int, numbers: range, content: bytes = OLD) -> None:
    await writer.commit(PutInode(ino, regular()), PutChunks(ino, dict.fromkeys(numbers, content)))


def rows(file: SqliteBackend, table: str) -> int:
    """Return how many rows there are in the file, read by others or not."""
    with closing(sqlite3.connect(file.path)) as connection:
        return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


async def sweep(file: SqliteBackend, scope: str) -> None:
    """Mount *scope* until everything that was removed is deleted."""
    async with claimed(file, scope, terms=TAKE_OVER):
        with trio.fail_after(TIMEOUT):
            while rows(file, "dropped_chunks") or rows(file, "dropped_scopes"):  # noqa: ASYNC110 (no event tells)
                await trio.sleep(0.01)


@pytest.mark.parametrize("how", [DropInode(2, regular()), DropChunks(2, None), DropChunks(2, tuple(range(MANY)))])
async def test_removed_content_is_gone_at_once_and_deleted_by_the_next_claim(
    file: SqliteBackend, scope: str, how: DropInode | DropChunks
) -> None:
    async with unswept(file, scope) as writer:
        await put(writer, 2, range(MANY))
        await put(writer, 3, range(5))
        await writer.commit(how, grows=False)
        assert rows(file, "chunks") > 5, "the commit itself deleted everything"
        assert set((await stored(file, scope)).chunks) == {(3, number) for number in range(5)}
    await sweep(file, scope)
    assert rows(file, "chunks") == 5
    assert set((await stored(file, scope)).chunks) == {(3, number) for number in range(5)}


async def test_little_content_is_deleted_in_its_commit(file: SqliteBackend, scope: str) -> None:
    async with unswept(file, scope) as writer:
        for ino in (2, 3):
            await put(writer, ino, range(leftovers.SLICE - 1))
        await writer.commit(DropInode(2, regular()), grows=False)
        await writer.commit(DropChunks(3, None), grows=False)
        assert rows(file, "chunks") == rows(file, "dropped_chunks") == 0


@pytest.mark.parametrize("swept", [False, True])
async def test_a_rewrite_keeps_what_it_writes(file: SqliteBackend, scope: str, swept: bool) -> None:
    """Also if the claim knows that nothing was left before this change."""
    async with unswept(file, scope) as writer:
        await put(writer, 2, range(MANY))
        while swept and await writer.store._database.run(writer.claim._delete_slice):  # type: ignore[attr-defined]  # noqa: SLF001
            pass
        await writer.commit(DropChunks(2, None), PutChunks(2, {0: NEW, MANY - 1: NEW, MANY + 7: NEW}))
    expected = {(2, 0): NEW, (2, MANY - 1): NEW, (2, MANY + 7): NEW}
    assert (await stored(file, scope)).chunks == expected
    await sweep(file, scope)
    assert (await stored(file, scope)).chunks == expected
    assert rows(file, "chunks") == len(expected)


@pytest.mark.parametrize("seed", range(5))
async def test_any_order_of_writes_removals_and_slices_gives_what_was_written_last(
    file: SqliteBackend, scope: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slices are small, so that many changes come in between."""
    monkeypatch.setattr(leftovers, "SLICE", 3)
    rng = random.Random(seed)
    expected: dict[tuple[int, int], bytes] = {}
    for _ in range(10):  # each round is a daemon that is killed at its end
        async with unswept(file, scope) as writer:
            for _ in range(15):
                await _change(rng, writer, expected)
                if rng.random() < 0.3:
                    await writer.store._database.run(writer.claim._delete_slice)  # type: ignore[attr-defined]  # noqa: SLF001
            assert (await stored(file, scope)).chunks == expected
    await sweep(file, scope)
    assert (await stored(file, scope)).chunks == expected
    assert rows(file, "chunks") == len(expected)


async def _change(rng: random.Random, writer: ScopeWriter, expected: dict[tuple[int, int], bytes]) -> None:
    """Write or remove some chunks of one of two files, and note in *expected* what must be there then."""
    ino = rng.choice((2, 3))
    first = rng.randrange(30)
    numbers = range(first, first + rng.randrange(1, 12), rng.choice((1, 1, 2)))
    if rng.random() < 0.5:
        content = rng.randbytes(4)
        await writer.commit(PutInode(ino, regular()), PutChunks(ino, dict.fromkeys(numbers, content)))
        expected.update(dict.fromkeys(((ino, number) for number in numbers), content))
        return
    dropped = None if rng.random() < 0.2 else tuple(numbers)
    await writer.commit(DropChunks(ino, dropped), grows=False)
    for key in [key for key in expected if key[0] == ino and (dropped is None or key[1] in dropped)]:
        del expected[key]


async def test_others_commit_while_a_scope_is_destroyed(file: SqliteBackend, scope: str) -> None:
    async with unswept(file, "large") as large:
        await put(large, 2, range(MANY))
        await large.claim.release()
    async with claimed(file, scope) as writer, trio.open_nursery() as nursery:
        store = file.open()
        nursery.start_soon(store.drop, "large")
        with trio.fail_after(TIMEOUT):
            while not rows(file, "dropped_scopes"):
                await trio.lowlevel.checkpoint()
        await writer.commit(PutInode(2, regular()))
        assert rows(file, "dropped_scopes"), "the writer waited until the scope was destroyed"
    await store.aclose()
    assert rows(file, "dropped_scopes") == rows(file, "chunks") == 0
    assert set((await stored(file, scope)).inodes) == {2}


async def test_an_interrupted_destroy_leaves_no_scope_and_the_next_mount_finishes_it(
    file: SqliteBackend, scope: str
) -> None:
    async with unswept(file, "large") as large:
        await put(large, 2, range(MANY))
        await large.claim.release()
        store = large.store
        assert isinstance(store, SqliteStore)
        with trio.CancelScope() as interrupted:
            interrupted.cancel()
            await store.drop("large")
        assert rows(file, "chunks")
        assert await store.scopes() == []
        with pytest.raises(ScopeMissing):
            await stored(file, "large")
    async with unswept(file, "large") as again:
        assert again.claim.created
        await put(again, 2, range(3), NEW)
    await sweep(file, scope)
    assert rows(file, "chunks") == 3
    assert set((await stored(file, "large")).chunks.values()) == {NEW}


async def test_a_file_of_the_first_layout_gets_the_tables_that_it_lacks(file: SqliteBackend, scope: str) -> None:
    async with unswept(file, scope) as writer:
        await put(writer, 2, range(3))
    with closing(sqlite3.connect(file.path)) as connection:
        connection.executescript("DROP TABLE dropped_chunks; DROP TABLE dropped_scopes; PRAGMA user_version = 1")
    assert set((await stored(file, scope)).chunks) == {(2, number) for number in range(3)}
    async with unswept(file, scope) as writer:
        await put(writer, 3, range(MANY))
        await writer.commit(DropInode(3, regular()), grows=False)
    await sweep(file, scope)
    assert rows(file, "chunks") == 3
