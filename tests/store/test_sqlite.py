"""What is particular to the SQLite store: its URL, its file, and others who hold it."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.support.stores import SqlitePlace, mounted, regular, stored, stranger
from vfsd.errors import FormatTooNew, ScopeDamaged, ScopeMissing, StoreError, StoreRefused, StoreUnreachable, UsageError
from vfsd.store.base import ClaimTerms, StoreOptions
from vfsd.store.url import open_store
from vfsd.tree.change import CHUNK_SIZE, Change, PutChunks, PutEntry, PutInode

IMPATIENT = StoreOptions(timeout=0.1)


@pytest.fixture
def file(tmp_path: Path) -> SqlitePlace:
    """Return a file that there is not yet, in a directory of its own."""
    directory = tmp_path / "directory"
    directory.mkdir()
    return SqlitePlace(directory / "scopes.db")


# --- its URL


@pytest.mark.parametrize("form", ["sqlite:{}", "sqlite://{}", "SQLite:{}"])
async def test_a_path_can_be_absolute(file: SqlitePlace, scope: str, form: str) -> None:
    store = open_store(form.format(file.path), StoreOptions())
    assert store.label == f"sqlite:{file.path}"
    await store.claim(scope, stranger(), ClaimTerms())
    await store.aclose()
    assert file.path.exists()


async def test_a_relative_path_is_taken_from_where_it_was_opened(
    file: SqlitePlace, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.path.parent)
    store = open_store("sqlite:odd ?name#%20.db", StoreOptions())
    monkeypatch.chdir("/")
    await store.claim(scope, stranger(), ClaimTerms())
    await store.aclose()
    assert os.listdir(file.path.parent) == ["odd ?name#%20.db"]


@pytest.mark.parametrize("url", ["sqlite:", "sqlite:///", "sqlite://host/path.db", "sqlite://relative.db"])
def test_a_url_without_a_path_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError, match="sqlite:PATH"):
        open_store(url, StoreOptions())


# --- its file


async def test_a_missing_directory_is_named(tmp_path: Path, scope: str) -> None:
    store = open_store(f"sqlite:{tmp_path}/none/scopes.db", StoreOptions())
    for attempt in (store.check(), store.claim(scope, stranger(), ClaimTerms()), store.scopes(), store.drop(scope)):
        with pytest.raises(StoreUnreachable, match=f"no directory {tmp_path}/none; create it"):
            await attempt


async def test_looking_makes_no_file(file: SqlitePlace, scope: str) -> None:
    store = file.open()
    assert await store.check() == []
    assert await store.scopes() == []
    assert (await store.capacity()).total > 0
    for attempt in (store.drop(scope), store.claim(scope, stranger(), ClaimTerms(create=False)), stored(file, scope)):
        with pytest.raises(ScopeMissing, match=f"no scope {scope} in sqlite:{file.path}"):
            await attempt
    await store.aclose()
    assert not list(file.path.parent.iterdir())


async def refuse(file: SqlitePlace, kind: type[StoreError], why: str) -> None:
    """See that the file is refused in every way, by name, and left as it is."""
    before = file.path.read_bytes()
    store = file.open()
    for attempt in (
        store.check(),
        store.claim("scope", stranger(), ClaimTerms()),
        store.scopes(),
        stored(file, "scope"),
    ):
        with pytest.raises(kind, match=f"sqlite:{file.path}: .*{why}"):
            await attempt
    await store.aclose()
    assert file.path.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused(file: SqlitePlace) -> None:
    file.path.write_bytes(b"my precious notes\n" * 1000)
    await refuse(file, StoreRefused, "not a database; name another file")


async def test_the_database_of_another_program_is_refused(file: SqlitePlace) -> None:
    with closing(sqlite3.connect(file.path)) as connection, connection:
        connection.execute("CREATE TABLE precious (notes)")
    await refuse(file, StoreRefused, "another program; name another file")


async def test_a_newer_layout_is_refused(file: SqlitePlace, scope: str) -> None:
    async with mounted(file, scope):
        pass
    with closing(sqlite3.connect(file.path)) as connection, connection:
        connection.execute("PRAGMA user_version = 2")
    await refuse(file, FormatTooNew, "layout 2.*upgrade vfsd")


async def test_a_directory_is_refused(file: SqlitePlace) -> None:
    file.path.mkdir()
    with pytest.raises(StoreUnreachable, match=f"sqlite:{file.path}: unable to open"):
        await file.open().check()


async def test_a_corrupt_file_is_named(file: SqlitePlace, scope: str) -> None:
    async with mounted(file, scope) as mount:
        await mount.commit(*(PutInode(ino, regular()) for ino in range(2, 3000)))
    with file.path.open("r+b") as spoilt:
        spoilt.seek(10 * 4096)
        spoilt.write(b"\xff" * (file.path.stat().st_size - spoilt.tell()))
    with pytest.raises(ScopeDamaged, match=rf"sqlite:{file.path}: .*backup.*\.recover"):
        await stored(file, scope)


async def test_an_empty_file_becomes_a_store(file: SqlitePlace, scope: str) -> None:
    file.path.touch()
    async with mounted(file, scope) as mount:
        await mount.commit(PutInode(2, regular()))
    assert set((await stored(file, scope)).inodes) == {2}


async def test_closed_it_is_one_file(file: SqlitePlace, scope: str) -> None:
    async with mounted(file, scope) as mount:
        await mount.commit(PutInode(2, regular()))
    assert list(file.path.parent.iterdir()) == [file.path]
    copy = SqlitePlace(file.path.with_name("copy.db"))
    file.path.rename(copy.path)
    assert set((await stored(copy, scope)).inodes) == {2}


async def test_a_file_that_was_moved_away_takes_no_commits_until_it_is_back(file: SqlitePlace, scope: str) -> None:
    away = file.path.with_name("away.db")
    async with mounted(file, scope) as mount:
        await mount.commit(PutInode(2, regular()))
        file.path.rename(away)
        with pytest.raises(StoreUnreachable, match="moved or removed"):
            await mount.commit(PutInode(3, regular()))
        file.path.touch()
        with pytest.raises(StoreUnreachable, match="moved or removed"):
            await mount.commit(PutInode(3, regular()))
        away.rename(file.path)
        await mount.commit(PutInode(4, regular()))
    assert set((await stored(file, scope)).inodes) == {2, 4}


# --- its log


async def test_commits_are_taken_out_of_the_log_beside_others(file: SqlitePlace, scope: str) -> None:
    async with mounted(file, scope) as mount:
        for ino in range(2, 602):
            await mount.commit(PutInode(ino, regular()), PutEntry(1, b"%d" % ino, ino, ino))
        with trio.fail_after(60):
            while file.path.stat().st_size < 50 * 600:  # noqa: ASYNC110 (a thread does it, and tells nobody)
                await trio.sleep(0.01)
        await mount.commit(PutInode(2, regular(uid=7)))
    assert (await stored(file, scope)).inodes[2].uid == 7


async def test_the_log_does_not_grow_without_bounds(file: SqlitePlace, scope: str) -> None:
    content = os.urandom(CHUNK_SIZE)
    store = file.open()
    claim = await store.claim(
        scope, stranger(), ClaimTerms()
    )  # nobody keeps it: the commits themselves must see to that
    for ino in range(2, 42):
        change = PutInode(ino, regular()), PutChunks(ino, dict.fromkeys(range(64), content))
        await claim.commit(Change(change, grows=True))
        assert file.path.with_name("scopes.db-wal").stat().st_size < 20 << 20
    await store.aclose()
    assert len((await stored(file, scope)).chunks) == 40 * 64


async def test_sync_flushes_the_log(file: SqlitePlace, scope: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[tuple[str, int]] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        flushed.append((os.readlink(f"/proc/self/fd/{descriptor}"), os.fstat(descriptor).st_size))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    store = file.open()
    claim = await store.claim(scope, stranger(), ClaimTerms())
    await claim.commit(Change((PutChunks(2, {0: bytes(range(256))}),), grows=True))
    await claim.sync()
    log = file.path.with_name("scopes.db-wal")
    assert flushed == [(str(log), log.stat().st_size)]
    assert bytes(range(256)) in log.read_bytes()
    await store.aclose()


# --- others who hold it


@contextmanager
def locked(file: SqlitePlace) -> Iterator[sqlite3.Connection]:
    """Hold the file as another program that writes to it."""
    with closing(sqlite3.connect(file.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield connection


async def test_commits_wait_for_a_lock_to_end(file: SqlitePlace, scope: str) -> None:
    async with mounted(file, scope) as mount, trio.open_nursery() as nursery:
        with locked(file):
            for ino in range(2, 12):
                nursery.start_soon(mount.commit, PutInode(ino, regular()))
            await trio.testing.wait_all_tasks_blocked()
            assert mount.claim.pending == 10
            assert not (await stored(file, scope)).inodes
    assert mount.claim.pending == 0
    assert set((await stored(file, scope)).inodes) == set(range(2, 12))


async def test_commits_do_not_wait_longer_than_they_may(file: SqlitePlace, scope: str) -> None:
    async with mounted(file, scope, options=IMPATIENT) as mount:
        with locked(file), pytest.raises(StoreUnreachable, match=f"sqlite:{file.path}: .*locked"):
            await mount.commit(PutInode(2, regular()))
        assert not (await stored(file, scope)).inodes
        await mount.commit(PutInode(3, regular()))
    assert set((await stored(file, scope)).inodes) == {3}


async def test_a_commit_given_up_while_it_waits_is_not_stored(file: SqlitePlace, scope: str) -> None:
    async with mounted(file, scope) as mount:
        with locked(file):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(mount.commit, PutInode(2, regular()))
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
        await mount.commit(PutInode(3, regular()))
    assert set((await stored(file, scope)).inodes) == {3}


async def test_a_claim_outlives_a_lock_that_outlasts_a_renewal(
    file: SqlitePlace, scope: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = file.open(IMPATIENT)
    claim = await store.claim(scope, stranger(), ClaimTerms())
    async with trio.open_nursery() as nursery:
        with locked(file):
            nursery.start_soon(claim.keep)
            with trio.fail_after(60):
                while "could not renew the lease" not in caplog.text:  # noqa: ASYNC110 (a log sets no event)
                    await trio.sleep(0.01)
        await claim.commit(Change((PutInode(2, regular()),), grows=True))
        nursery.cancel_scope.cancel()
    await store.aclose()


def commit_all_until_killed(url: str, scopes: list[str], acknowledged: int) -> list[set[int]]:
    """Run endless_commits on each scope at the same time, kill all, and return what each has acknowledged."""
    program = [sys.executable, "-m", "tests.support.endless_commits", url]
    processes = [subprocess.Popen([*program, scope, "2"], stdout=subprocess.PIPE) for scope in scopes]
    try:
        return [{int(line) for line in islice(process.stdout or (), acknowledged)} for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


async def test_several_daemons_share_a_file(file: SqlitePlace, new_scope: Callable[[], str]) -> None:
    scopes = [new_scope() for _ in range(3)]
    for scope, numbers in zip(scopes, commit_all_until_killed(file.url, scopes, 200), strict=True):
        assert len(numbers) == 200
        assert numbers <= set((await stored(file, scope)).inodes)
