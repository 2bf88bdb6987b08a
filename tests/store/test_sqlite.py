"""Only the SQLite store: its URL, its file, its log, and other processes that lock it."""

import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.support.stores import SqliteBackend, claimed, regular, remote_owner, stored
from vfsd.errors import (
    Fenced,
    FormatTooNew,
    ScopeDamaged,
    ScopeMissing,
    StoreError,
    StoreRefused,
    StoreUnreachable,
    UsageError,
)
from vfsd.store.base import ClaimTerms, StoreOptions
from vfsd.store.url import open_store
from vfsd.tree.change import CHUNK_SIZE, Change, DropChunks, Op, PutChunks, PutEntry, PutInode

SHORT_TIMEOUT = StoreOptions(timeout=0.1)


@pytest.fixture
def file(tmp_path: Path) -> SqliteBackend:
    """Return a backend whose file does not exist yet, in its own directory."""
    directory = tmp_path / "directory"
    directory.mkdir()
    return SqliteBackend(directory / "scopes.db")


# --- its URL


@pytest.mark.parametrize("form", ["sqlite:{}", "sqlite://{}", "SQLite:{}"])
async def test_a_path_can_be_absolute(file: SqliteBackend, scope: str, form: str) -> None:
    store = open_store(form.format(file.path), StoreOptions())
    assert store.label == f"sqlite:{file.path}"
    await store.claim(scope, remote_owner(), ClaimTerms())
    await store.aclose()
    assert file.path.exists()


async def test_a_relative_path_belongs_to_the_working_directory_at_opening(
    file: SqliteBackend, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.path.parent)
    store = open_store("sqlite:odd ?name#%20.db", StoreOptions())
    monkeypatch.chdir("/")
    await store.claim(scope, remote_owner(), ClaimTerms())
    await store.aclose()
    assert os.listdir(file.path.parent) == ["odd ?name#%20.db"]


@pytest.mark.parametrize("url", ["sqlite:", "sqlite:///", "sqlite://host/path.db", "sqlite://relative.db"])
def test_a_url_without_a_path_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError, match="sqlite:PATH"):
        open_store(url, StoreOptions())


# --- its file


async def test_a_missing_directory_is_named(tmp_path: Path, scope: str) -> None:
    store = open_store(f"sqlite:{tmp_path}/none/scopes.db", StoreOptions())
    for attempt in (store.check(), store.claim(scope, remote_owner(), ClaimTerms()), store.scopes(), store.drop(scope)):
        with pytest.raises(StoreUnreachable, match=f"no directory {tmp_path}/none; create it"):
            await attempt


async def test_reading_does_not_create_the_file(file: SqliteBackend, scope: str) -> None:
    store = file.open()
    assert await store.check() == []
    for look in (store.scopes(), store.droppable(scope)):
        with pytest.raises(StoreUnreachable, match=f"sqlite:{file.path}: there is no such file"):
            await look
    assert (await store.capacity()).total > 0
    for attempt in (
        store.drop(scope),
        store.claim(scope, remote_owner(), ClaimTerms(create=False)),
        stored(file, scope),
    ):
        with pytest.raises(ScopeMissing, match=f"no scope {scope} in sqlite:{file.path}"):
            await attempt
    await store.aclose()
    assert not list(file.path.parent.iterdir())


async def refuse(file: SqliteBackend, kind: type[StoreError], why: str) -> None:
    """Check that every use of the file is refused with its name, and that the file does not change."""
    before = file.path.read_bytes()
    store = file.open()
    for attempt in (
        store.check(),
        store.claim("scope", remote_owner(), ClaimTerms()),
        store.scopes(),
        stored(file, "scope"),
    ):
        with pytest.raises(kind, match=f"sqlite:{file.path}: .*{why}"):
            await attempt
    await store.aclose()
    assert file.path.read_bytes() == before


async def test_a_file_that_is_not_a_database_is_refused(file: SqliteBackend) -> None:
    file.path.write_bytes(b"my precious notes\n" * 1000)
    await refuse(file, StoreRefused, "not a database; name another file")


async def test_the_database_of_another_program_is_refused(file: SqliteBackend) -> None:
    with closing(sqlite3.connect(file.path)) as connection, connection:
        connection.execute("CREATE TABLE precious (notes)")
    await refuse(file, StoreRefused, "another program; name another file")


async def test_a_newer_layout_is_refused(file: SqliteBackend, scope: str) -> None:
    async with claimed(file, scope):
        pass
    with closing(sqlite3.connect(file.path)) as connection, connection:
        connection.execute("PRAGMA user_version = 3")
    await refuse(file, FormatTooNew, "layout 3.*upgrade vfsd")


async def test_a_directory_is_refused(file: SqliteBackend) -> None:
    file.path.mkdir()
    with pytest.raises(StoreUnreachable, match=f"sqlite:{file.path}: it is a directory; name a file in it"):
        await file.open().check()


async def test_a_corrupt_file_is_named(file: SqliteBackend, scope: str) -> None:
    async with claimed(file, scope) as writer:
        await writer.commit(*(PutInode(ino, regular()) for ino in range(2, 3000)))
    with file.path.open("r+b") as damaged:
        damaged.seek(10 * 4096)
        damaged.write(b"\xff" * (file.path.stat().st_size - damaged.tell()))
    with pytest.raises(ScopeDamaged, match=rf"sqlite:{file.path}: .*backup.*\.recover"):
        await stored(file, scope)


async def test_an_empty_file_becomes_a_store(file: SqliteBackend, scope: str) -> None:
    file.path.touch()
    async with claimed(file, scope) as writer:
        await writer.commit(PutInode(2, regular()))
    assert set((await stored(file, scope)).inodes) == {2}


async def test_after_closing_there_is_only_one_file_and_it_can_be_moved(file: SqliteBackend, scope: str) -> None:
    async with claimed(file, scope) as writer:
        await writer.commit(PutInode(2, regular()))
    assert list(file.path.parent.iterdir()) == [file.path]
    copy = SqliteBackend(file.path.with_name("copy.db"))
    file.path.rename(copy.path)
    assert set((await stored(copy, scope)).inodes) == {2}


async def test_a_file_that_was_moved_away_takes_no_commits_until_it_is_back(file: SqliteBackend, scope: str) -> None:
    away = file.path.with_name("away.db")
    async with claimed(file, scope) as writer:
        await writer.commit(PutInode(2, regular()))
        file.path.rename(away)
        with pytest.raises(StoreUnreachable, match="was moved, removed or replaced"):
            await writer.commit(PutInode(3, regular()))
        file.path.touch()
        with pytest.raises(StoreUnreachable, match="was moved, removed or replaced"):
            await writer.commit(PutInode(3, regular()))
        away.rename(file.path)
        await writer.commit(PutInode(4, regular()))
    assert set((await stored(file, scope)).inodes) == {2, 4}


# --- its log


async def test_the_log_is_checkpointed_during_commits(file: SqliteBackend, scope: str) -> None:
    async with claimed(file, scope) as writer:
        for ino in range(2, 602):
            await writer.commit(PutInode(ino, regular()), PutEntry(1, b"%d" % ino, ino, ino + 1))
        with trio.fail_after(60):
            while file.path.stat().st_size < 50 * 600:  # noqa: ASYNC110 (a thread does it, without an event)
                await trio.sleep(0.01)
        await writer.commit(PutInode(2, regular(uid=7)))
    assert (await stored(file, scope)).inodes[2].uid == 7


async def test_the_log_stays_short_without_keep(file: SqliteBackend, scope: str) -> None:
    content = os.urandom(CHUNK_SIZE)
    store = file.open()
    claim = await store.claim(scope, remote_owner(), ClaimTerms())
    # No task runs claim.keep(), so only the commits themselves can checkpoint the log.
    for ino in range(2, 42):
        change = PutInode(ino, regular()), PutChunks(ino, dict.fromkeys(range(64), content))
        await claim.commit(Change(change, grows=True))
        assert file.path.with_name("scopes.db-wal").stat().st_size < 20 << 20
    await store.aclose()
    assert len((await stored(file, scope)).chunks) == 40 * 64


async def test_sync_flushes_the_log(file: SqliteBackend, scope: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[tuple[str, int]] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        flushed.append((os.readlink(f"/proc/self/fd/{descriptor}"), os.fstat(descriptor).st_size))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    store = file.open()
    claim = await store.claim(scope, remote_owner(), ClaimTerms())
    await claim.commit(Change((PutChunks(2, {0: bytes(range(256))}),), grows=True))
    await claim.sync()
    log = file.path.with_name("scopes.db-wal")
    assert flushed == [(str(log), log.stat().st_size)]
    assert bytes(range(256)) in log.read_bytes()
    await store.aclose()


# --- other processes that use the file


@contextmanager
def locked(file: SqliteBackend) -> Iterator[sqlite3.Connection]:
    """Lock the file, as another program does that writes to it."""
    with closing(sqlite3.connect(file.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


async def test_commits_wait_while_the_file_is_locked(file: SqliteBackend, scope: str) -> None:
    async with claimed(file, scope) as writer, trio.open_nursery() as nursery:
        with locked(file):
            for ino in range(2, 12):
                nursery.start_soon(writer.commit, PutInode(ino, regular()))
            await trio.testing.wait_all_tasks_blocked()
            assert writer.claim.pending == 10
            assert not (await stored(file, scope)).inodes
    assert writer.claim.pending == 0
    assert set((await stored(file, scope)).inodes) == set(range(2, 12))


async def test_commits_do_not_wait_longer_than_the_timeout(file: SqliteBackend, scope: str) -> None:
    async with claimed(file, scope, options=SHORT_TIMEOUT) as writer:
        with locked(file), pytest.raises(StoreUnreachable, match=f"sqlite:{file.path}: .*locked"):
            await writer.commit(PutInode(2, regular()))
        assert not (await stored(file, scope)).inodes
        await writer.commit(PutInode(3, regular()))
    assert set((await stored(file, scope)).inodes) == {3}


async def test_a_commit_cancelled_while_it_waits_is_not_stored(file: SqliteBackend, scope: str) -> None:
    async with claimed(file, scope) as writer:
        with locked(file):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(writer.commit, PutInode(2, regular()))
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
        await writer.commit(PutInode(3, regular()))
    assert set((await stored(file, scope)).inodes) == {3}


async def test_a_claim_survives_a_lock_that_prevents_a_renewal(
    file: SqliteBackend, scope: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store = file.open(SHORT_TIMEOUT)
    claim = await store.claim(scope, remote_owner(), ClaimTerms())
    async with trio.open_nursery() as nursery:
        with locked(file):
            nursery.start_soon(claim.keep)
            with trio.fail_after(60):
                while "could not renew the lease" not in caplog.text:  # noqa: ASYNC110 (a log sets no event)
                    await trio.sleep(0.01)
        await claim.commit(Change((PutInode(2, regular()),), grows=True))
        nursery.cancel_scope.cancel()
    await store.aclose()


# --- commits with much content


def large(ino: int) -> tuple[PutInode, PutChunks]:
    """Return the operations that store a file of 8 MiB."""
    count = (8 << 20) // CHUNK_SIZE
    return PutInode(ino, regular()), PutChunks(ino, dict.fromkeys(range(count), b"x" * CHUNK_SIZE))


def many_inodes() -> list[PutInode]:
    """Return the operations that store a thousand inodes."""
    return [PutInode(ino, regular()) for ino in range(2, 1002)]


@pytest.mark.parametrize("ops", [large(2), many_inodes()], ids=["content", "operations"])
async def test_the_event_loop_runs_during_a_long_commit(file: SqliteBackend, scope: str, ops: Sequence[Op]) -> None:
    turns, done = 0, trio.Event()
    async with claimed(file, scope) as writer, trio.open_nursery() as nursery:

        async def commit() -> None:
            await writer.commit(*ops)
            done.set()

        nursery.start_soon(commit)
        while not done.is_set():
            await trio.lowlevel.checkpoint()
            turns += 1
    assert turns > 3, "the commit took the event loop for itself"
    found = await stored(file, scope)
    assert len(found.inodes) + len(found.chunks) == sum(
        len(op.chunks) if isinstance(op, PutChunks) else 1 for op in ops
    )


async def test_small_and_large_commits_at_the_same_time_are_all_stored(file: SqliteBackend, scope: str) -> None:
    async with claimed(file, scope) as writer, trio.open_nursery() as nursery:
        for ino in range(2, 6):
            nursery.start_soon(writer.commit, *large(ino))
        for ino in range(6, 300):
            nursery.start_soon(writer.commit, PutInode(ino, regular()), PutChunks(ino, {0: b"small"}))
    found = await stored(file, scope)
    assert set(found.inodes) == set(range(2, 300))
    assert len(found.chunks) == 4 * ((8 << 20) // CHUNK_SIZE) + 294


async def test_a_large_commit_waits_while_the_file_is_locked_and_no_longer_than_the_timeout(
    file: SqliteBackend, scope: str
) -> None:
    async with claimed(file, scope) as writer, trio.open_nursery() as nursery:
        with locked(file):
            nursery.start_soon(writer.commit, *large(2))
            await trio.testing.wait_all_tasks_blocked()
            assert writer.claim.pending == 1
    async with claimed(file, scope, options=SHORT_TIMEOUT) as writer:
        with locked(file), pytest.raises(StoreUnreachable, match="locked"):
            await writer.commit(*large(3))
    assert set((await stored(file, scope)).inodes) == {2}


async def test_a_large_commit_is_fenced(file: SqliteBackend, scope: str) -> None:
    async with claimed(file, scope) as first:
        async with claimed(file, scope, remote_owner("/mnt/new"), ClaimTerms(take_over=True)):
            with pytest.raises(Fenced, match="/mnt/new"):
                await first.commit(*large(2))
        with pytest.raises(Fenced, match="/mnt/new"):
            first.claim.raise_if_unusable()
    assert not (await stored(file, scope)).inodes


async def test_what_a_large_commit_removes_is_deleted(file: SqliteBackend, scope: str) -> None:
    async with claimed(file, scope) as writer:
        await writer.commit(*large(2))
        await writer.commit(DropChunks(2, None), *large(3))
        await writer.commit(PutChunks(2, {5: b"new"}))
        while rows_of(file, 2) > 1:  # noqa: ASYNC110 (the rows are in the store: no event tells)
            await trio.sleep(0.01)
    assert {key: chunk for key, chunk in (await stored(file, scope)).chunks.items() if key[0] == 2} == {(2, 5): b"new"}


def rows_of(file: SqliteBackend, ino: int) -> int:
    """Return how many chunks of inode *ino* have a row, whether it is still valid or not."""
    with closing(sqlite3.connect(file.path)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM chunks WHERE ino = ?", (ino,)).fetchone()[0])


def acknowledged_until_killed(url: str, scopes: list[str], acknowledged: int) -> list[set[int]]:
    """Run ``tests.support.endless_commits`` on all *scopes* at the same time, and kill each process.

    Return the numbers that each process had acknowledged: as many as *acknowledged* says.
    """
    program = [sys.executable, "-m", "tests.support.endless_commits", url]
    processes = [subprocess.Popen([*program, scope, "2"], stdout=subprocess.PIPE) for scope in scopes]
    try:
        return [{int(line) for line in islice(process.stdout or (), acknowledged)} for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


async def test_several_daemons_share_a_file(file: SqliteBackend, new_scope: Callable[[], str]) -> None:
    scopes = [new_scope() for _ in range(3)]
    for scope, numbers in zip(scopes, acknowledged_until_killed(file.url, scopes, 200), strict=True):
        assert len(numbers) == 200
        assert numbers <= set((await stored(file, scope)).inodes)
