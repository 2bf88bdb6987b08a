"""The three files of an SQLite database in use: somebody removes, replaces or overwrites one. No commit is lost unseen.

Another process does that, as in reality. This process must not open the files itself: closing them again would drop
SQLite's locks.
"""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.store.test_sqlite import acknowledged_until_killed
from tests.support.stores import TIMEOUT, ScopeWriter, SqliteBackend, claimed, regular, remote_owner, stored
from vfsd.errors import StoreUnreachable
from vfsd.store.base import ClaimTerms
from vfsd.tree.change import CHUNK_SIZE, PutChunks, PutInode

FILES = {"database": "scopes.db", "log": "scopes.db-wal", "index": "scopes.db-shm"}


@pytest.fixture
def file(tmp_path: Path) -> SqliteBackend:
    """Return a backend whose file does not exist yet."""
    return SqliteBackend(tmp_path / "scopes.db")


def shell(file: SqliteBackend, script: str) -> None:
    """Run *script* in the directory of *file*."""
    subprocess.run(["sh", "-ec", script], cwd=file.path.parent, check=True)


@asynccontextmanager
async def opened(file: SqliteBackend, scope: str) -> AsyncIterator[ScopeWriter]:
    """Claim *scope* without keeping the claim, so that no checkpoint begins by itself."""
    store = file.open()
    try:
        yield ScopeWriter(store, await store.claim(scope, remote_owner(), ClaimTerms()))
    finally:
        await store.aclose()


async def put(writer: ScopeWriter, ino: int) -> None:
    content = os.urandom(CHUNK_SIZE)
    await writer.commit(PutInode(ino, regular()), PutChunks(ino, {0: content}))


async def put_many(writer: ScopeWriter, inos: range) -> None:
    for ino in inos:
        await put(writer, ino)


async def assert_refused(writer: ScopeWriter, name: str) -> None:
    """Check that commits and syncs fail, and that their errors name the file *name*."""
    for attempt in (partial(put, writer, 1000), writer.claim.sync):
        with pytest.raises(StoreUnreachable, match=rf"/{name} .*mount again"):
            await attempt()


async def checkpointed(writer: ScopeWriter) -> None:
    """Move the whole log into the file, as happens now and then under a mount."""
    await writer.store._database.checkpoint()  # type: ignore[attr-defined]  # noqa: SLF001


@pytest.mark.parametrize("name", FILES.values())
@pytest.mark.parametrize("script", ["rm {0}", "cp {0} other; mv other {0}", "mv {0} away; : > {0}"])
async def test_a_file_that_was_removed_or_replaced_takes_no_commits(
    file: SqliteBackend, scope: str, name: str, script: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(file, scope) as writer:
        await put_many(writer, range(2, 10))
        shell(file, script.format(name))
        await assert_refused(writer, name)
        await assert_refused(writer, name)
        logged = [record for record in caplog.records if record.levelname == "ERROR"]
        assert [f"{file.path.with_name(name)} was moved, removed or replaced" in one.message for one in logged] == [
            True
        ]


@pytest.mark.parametrize("name", FILES.values())
async def test_a_file_that_is_moved_back_takes_commits_again(file: SqliteBackend, scope: str, name: str) -> None:
    async with opened(file, scope) as writer:
        await put_many(writer, range(2, 10))
        shell(file, f"mv {name} away")
        await assert_refused(writer, name)
        shell(file, f"mv away {name}")
        await put(writer, 10)
        await writer.claim.sync()
    assert set((await stored(file, scope)).inodes) == set(range(2, 11))


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        pytest.param("cat backup > scopes.db", "scopes.db", id="the database from a backup"),
        pytest.param("dd if=/dev/zero of=scopes.db seek=3 bs=4096 count=1 conv=notrunc", "scopes.db", id="one page"),
        pytest.param("truncate -s 8192 scopes.db", "scopes.db", id="the database shorter"),
        pytest.param(": > scopes.db-wal", "scopes.db-wal", id="the log empty"),
        pytest.param("cat backup-wal > scopes.db-wal", "scopes.db-wal", id="the log from a backup"),
        pytest.param(
            "size=$(stat -c %s scopes.db-wal); cat backup-wal > scopes.db-wal; truncate -s $size scopes.db-wal",
            "scopes.db-wal",
            id="the log from a backup in its full length",
        ),
        pytest.param(": > scopes.db-shm", "scopes.db-shm", id="the index empty"),
        pytest.param("truncate -s 4096 scopes.db-shm", "scopes.db-shm", id="the index shorter"),
    ],
)
async def test_a_file_that_was_overwritten_in_place_takes_no_commits(
    file: SqliteBackend, scope: str, damage: str, name: str
) -> None:
    async with opened(file, scope) as writer:
        await put_many(writer, range(2, 10))
        await checkpointed(writer)
        await put(writer, 2)  # the log begins anew
        shell(file, "cp scopes.db backup; cp scopes.db-wal backup-wal")
        await put_many(writer, range(2, 10))
        shell(file, damage)
        await assert_refused(writer, name)
        await assert_refused(writer, name)


@pytest.mark.parametrize("when", ["before a new log", "in a new log", "after a checkpoint"])
async def test_an_overwritten_database_is_noticed_whatever_the_log_holds(
    file: SqliteBackend, scope: str, when: str
) -> None:
    async with opened(file, scope) as writer:
        await put_many(writer, range(2, 10))
        shell(file, "cp scopes.db backup")
        await checkpointed(writer)
        if when != "before a new log":
            await put_many(writer, range(2, 4))
        if when == "after a checkpoint":
            await checkpointed(writer)
        shell(file, "cat backup > scopes.db")
        await assert_refused(writer, "scopes.db")


async def test_an_overwritten_database_is_noticed_after_a_crash(
    file: SqliteBackend, new_scope: Callable[[], str]
) -> None:
    """The log that the killed process left is in the file soon."""
    acknowledged_until_killed(file.url, [new_scope()], 50)
    async with opened(file, new_scope()) as writer, trio.open_nursery() as nursery:
        database = writer.store._database  # type: ignore[attr-defined]  # noqa: SLF001
        assert not database.notices_writes
        nursery.start_soon(writer.claim.keep)
        with trio.fail_after(TIMEOUT):
            while not database.notices_writes:
                await writer.claim.sync()  # it looks at the files
        shell(file, "cp scopes.db backup; cat backup > scopes.db")
        await assert_refused(writer, "scopes.db")
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("name", ["scopes.db-wal", "scopes.db-shm"])
async def test_what_was_stored_before_a_log_or_index_was_removed_is_kept(
    file: SqliteBackend, scope: str, name: str
) -> None:
    """The next mount finds it, also if the daemon is killed: here another process looks before the file is closed."""
    async with opened(file, scope) as writer:
        await put_many(writer, range(2, 10))
        shell(file, f"rm {name}")
        await assert_refused(writer, name)
        copy = SqliteBackend(file.path.with_name("copy.db"))
        shell(file, "cp scopes.db copy.db; ! test -e scopes.db-wal || cp scopes.db-wal copy.db-wal")
        assert set((await stored(copy, scope)).inodes) == set(range(2, 10))


async def test_a_path_that_is_a_link_is_watched_and_flushed(
    file: SqliteBackend, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file.path.parent / "data").mkdir()
    file.path.symlink_to("data/real.db")
    flushed: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    async with opened(file, scope) as writer:
        await put(writer, 2)
        await writer.claim.sync()
        assert flushed == [str(file.path.parent / "data/real.db-wal")]
        shell(file, "rm data/real.db-wal")
        await assert_refused(writer, "real.db-wal")


@pytest.mark.parametrize("point", range(1, 10))
async def test_a_checkpoint_of_another_daemon_at_any_moment_of_a_look_is_no_damage(
    file: SqliteBackend, scope: str, monkeypatch: pytest.MonkeyPatch, point: int
) -> None:
    """It comes before the system call of the given number that looks at the files."""
    checkpoint = "import sqlite3; sqlite3.connect('scopes.db').execute('PRAGMA wal_checkpoint')"
    calls = 0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == point:
                shell(file, f'{sys.executable} -c "{checkpoint}"')
            return call(*arguments, **options)

        return counting

    async with opened(file, scope) as writer:
        await put_many(writer, range(2, 10))
        with monkeypatch.context() as patch:
            patch.setattr("vfsd.store.sqlite.files.os.stat", counted(os.stat))
            patch.setattr("vfsd.store.sqlite.files.os.pread", counted(os.pread))
            await put_many(writer, range(10, 14))
        assert calls > point
        await put_many(writer, range(14, 18))


async def test_other_daemons_and_checkpoints_are_no_damage(file: SqliteBackend, new_scope: Callable[[], str]) -> None:
    """Others commit, checkpoint, begin the log anew, are killed, and make the index anew, while this one commits."""
    async with claimed(file, new_scope()) as writer:
        others = partial(acknowledged_until_killed, file.url, [new_scope(), new_scope()], 1500)
        ended = trio.Event()

        async def run_others() -> None:
            await trio.to_thread.run_sync(others)
            ended.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_others)
            ino = 2
            while not ended.is_set():
                await put(writer, ino)
                ino += 1
                if ino % 50 == 0:
                    await checkpointed(writer)
                    await writer.claim.sync()
