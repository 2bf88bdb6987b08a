"""The list of scopes, destroying a scope, and the capacity of a store."""

import stat
from collections.abc import Callable

import pytest

from tests.store.test_claim import dead_owner
from tests.support.servers import RedisServer
from tests.support.stores import Backend, DurableBackend, RedisBackend, claimed, regular, remote_owner, stored
from vfsd import clock
from vfsd.errors import Fenced, ScopeBusy, ScopeMissing
from vfsd.store.base import ClaimTerms, ScopeSummary
from vfsd.tree.change import DropInode, PutChunks, PutEntry, PutInode


async def listed(backend: Backend, *names: str) -> list[ScopeSummary]:
    """Return the summaries of the scopes *names*."""
    store = backend.open()
    try:
        return [summary for summary in await store.scopes() if summary.name in names]
    finally:
        await store.aclose()


async def drop(backend: Backend, scope: str) -> None:
    store = backend.open()
    try:
        await store.drop(scope)
    finally:
        await store.aclose()


async def test_scopes_are_listed_by_name_with_their_number_of_files(
    backend: Backend, new_scope: Callable[[], str]
) -> None:
    names = [new_scope() for _ in range(3)]
    before = clock.now()
    for files, name in enumerate(names):
        async with claimed(backend, name) as writer:
            await writer.commit(*(PutInode(ino, regular()) for ino in range(2, 2 + files)))
    found = await listed(backend, *names)
    assert [summary.name for summary in found] == sorted(names)
    assert {summary.name: summary.files for summary in found} == {name: files for files, name in enumerate(names)}
    assert all(before <= summary.created_ns <= clock.now() for summary in found)
    assert all(summary.owner is None for summary in found)


async def test_a_summary_adds_up_the_files_without_the_root(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        root = regular()._replace(mode=stat.S_IFDIR | 0o755, size=0, ctime_ns=30)
        await writer.commit(
            PutInode(1, root),
            PutInode(2, regular()._replace(size=5, ctime_ns=20)),
            PutInode(3, regular()._replace(size=1 << 20, ctime_ns=10)),
        )
    (summary,) = await listed(backend, scope)
    assert (summary.files, summary.bytes, summary.changed_ns) == (2, 5 + (1 << 20), 30)
    store = backend.open()
    assert await store.droppable(scope) == summary
    with pytest.raises(ScopeMissing):
        await store.droppable(f"{scope}-2")
    await store.aclose()
    async with claimed(backend, scope, remote_owner()):
        store = backend.open()
        with pytest.raises(ScopeBusy, match=f"scope {scope} is mounted"):
            await store.droppable(scope)
        await store.aclose()


async def test_the_list_shows_the_owner_of_a_scope(backend: Backend, scope: str) -> None:
    owner = remote_owner("/mnt/here")
    async with claimed(backend, scope, owner) as writer:
        await writer.commit(PutInode(2, regular()), PutInode(3, regular()))
        await writer.commit(DropInode(3, regular()), grows=False)
        (summary,) = await listed(backend, scope)
        assert (summary.owner, summary.files) == (owner, 1)
    (summary,) = await listed(backend, scope)
    assert summary.owner is None


async def test_destroying_a_scope_keeps_the_others(backend: Backend, scope: str) -> None:
    neighbour = f"{scope}-2"
    for name in (scope, neighbour):
        async with claimed(backend, name) as writer:
            await writer.commit(PutInode(2, regular()), PutEntry(1, b"a", 2, 3), PutChunks(2, {0: b"x"}))
    await drop(backend, scope)
    with pytest.raises(ScopeMissing):
        await stored(backend, scope)
    assert [summary.name for summary in await listed(backend, scope, neighbour)] == [neighbour]
    found = await stored(backend, neighbour)
    assert (set(found.inodes), set(found.entries), set(found.chunks)) == ({2}, {(1, b"a")}, {(2, 0)})


async def test_destroying_a_scope_deletes_all_its_data(durable_backend: DurableBackend, scope: str) -> None:
    async with claimed(durable_backend, scope) as writer:
        await writer.commit(*(PutInode(ino, regular()) for ino in range(2, 1202)))
        await writer.commit(PutEntry(1, b"a", 2, 3), *(PutChunks(ino, {0: b"x", 9: b"y"}) for ino in range(2, 1202)))
        await writer.commit(DropInode(3, regular()), DropInode(4, regular()), grows=False)
    await drop(durable_backend, scope)
    assert durable_backend.leftover_data(scope) == []


async def test_a_scope_that_is_created_again_is_empty(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        await writer.commit(PutInode(2, regular()), PutEntry(1, b"a", 2, 3), PutChunks(2, {0: b"x"}))
    await drop(backend, scope)
    async with claimed(backend, scope) as writer:
        assert writer.claim.created
        await writer.commit(PutInode(2, regular()))
    found = await stored(backend, scope)
    assert (set(found.inodes), found.entries, found.chunks) == ({2}, {}, {})


async def test_a_claimed_scope_cannot_be_destroyed(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope, remote_owner("/mnt/here")) as writer:
        await writer.commit(PutInode(2, regular()))
        with pytest.raises(ScopeBusy, match=r"far\.example, pid 4711, at /mnt/here"):
            await drop(backend, scope)
        await writer.commit(PutInode(3, regular()))
    assert set((await stored(backend, scope)).inodes) == {2, 3}


async def test_a_missing_scope_cannot_be_destroyed(backend: Backend, scope: str) -> None:
    with pytest.raises(ScopeMissing, match=scope):
        await drop(backend, scope)


async def test_a_scope_whose_owner_process_has_ended_can_be_destroyed_at_once(backend: Backend, scope: str) -> None:
    store = backend.open()
    await store.claim(scope, dead_owner(), ClaimTerms())
    await store.aclose()
    await drop(backend, scope)
    assert not await listed(backend, scope)


@pytest.mark.parametrize("created_again", [False, True])
async def test_a_frozen_owner_cannot_write_after_its_scope_is_destroyed(
    durable_backend: DurableBackend, scope: str, created_again: bool
) -> None:
    async with claimed(durable_backend, scope) as frozen:
        await frozen.commit(PutInode(2, regular()))
        durable_backend.end_lease(scope)
        await drop(durable_backend, scope)
        if created_again:
            async with claimed(durable_backend, scope):
                pass
        with pytest.raises(Fenced, match=scope):
            await frozen.commit(PutInode(3, regular()), PutEntry(1, b"a", 3, 3), PutChunks(3, {0: b"x"}))
    if created_again:
        found = await stored(durable_backend, scope)
        assert (found.inodes, found.entries, found.chunks) == ({}, {}, {})
    else:
        assert not await listed(durable_backend, scope)


async def test_a_store_has_free_capacity(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        capacity = await writer.store.capacity()
    assert 0 < capacity.free <= capacity.total


@pytest.mark.parametrize("program", ["redis", "valkey"])
async def test_no_command_of_a_destroy_grows_with_the_scope(
    program: str, request: pytest.FixtureRequest, scope: str
) -> None:
    """Others use the server meanwhile: a scope of any size is destroyed in slices of the same size."""
    server: RedisServer = request.getfixturevalue(f"{program}_server")
    backend = RedisBackend(server)
    async with claimed(backend, scope) as writer:
        for first in range(2, 3002, 1000):
            await writer.commit(*(PutInode(ino, regular()) for ino in range(first, first + 1000)))
            await writer.commit(*(PutChunks(ino, {0: b"x"}) for ino in range(first, first + 1000)))
    with server.client() as client, client.monitor() as monitor:
        await drop(backend, scope)
        client.echo("end")
        commands: list[str] = []
        for line in monitor.listen():
            if line["command"] == "ECHO end":
                break
            commands.append(line["command"])
    assert backend.leftover_data(scope) == []
    unlinked = [command.split()[1:] for command in commands if command.startswith("UNLINK")]
    assert len(unlinked) > 3000
    assert max(map(len, unlinked)) <= 4
    scripts = [command for command in commands if command.startswith("EVAL")]
    assert len(scripts) >= 3000 / 250
    assert max(script.count(":data:") for script in scripts) < 250
    assert not any(command.startswith(("HKEYS", "HGETALL")) for command in commands)
