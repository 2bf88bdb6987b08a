"""Destroying a scope while it is mounted again: no scope is left that the list does not name, and none loses data.

For Redis, whose claim and drop consist of several commands, the other one runs completely before each of these commands
in turn. For every durable store, processes claim and drop at the same time.
"""

import multiprocessing
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

import pytest
import trio

from tests.store.test_scopes import drop, listed
from tests.support.servers import RedisServer
from tests.support.stores import Backend, DurableBackend, RedisBackend, claimed, regular, remote_owner, stored
from vfsd.errors import Fenced, ScopeBusy, ScopeDamaged, ScopeMissing
from vfsd.store.base import ClaimTerms, Store
from vfsd.store.redis.admin import RedisAdmin
from vfsd.tree.change import PutChunks, PutEntry, PutInode

EXPECTED = (ScopeBusy, ScopeMissing, ScopeDamaged, Fenced)
"""How a claim or a drop may end that meets the other one."""

FILES = 250
"""More than one slice."""

Step: TypeAlias = Callable[[], Awaitable[None]]


@pytest.fixture(params=["redis", "valkey"])
def redis_backend(request: pytest.FixtureRequest) -> RedisBackend:
    """Return a backend on each kind of server."""
    server: RedisServer = request.getfixturevalue(f"{request.param}_server")
    return RedisBackend(server)


class Interruption:
    """Lets *other* run completely before the command with number *at* that a store sends."""

    def __init__(self, store: Store, at: int, other: Step) -> None:
        self.commands = 0
        self._at = at
        self._other = other
        self._admin: RedisAdmin = store._admin  # type: ignore[attr-defined]  # noqa: SLF001 (only there all commands pass)
        self._execute = self._admin.execute
        self._admin.execute = self._interrupted

    def _interrupted(self, *words: bytes | str | int) -> Any:
        self.commands += 1
        if self.commands == self._at:
            trio.from_thread.run(self._other)
        return self._execute(*words)


async def write_scope(backend: Backend, scope: str) -> None:
    async with claimed(backend, scope) as writer:
        await writer.commit(
            *(PutInode(ino, regular()) for ino in range(2, 2 + FILES)),
            *(PutEntry(1, b"%d" % ino, ino, ino + 1) for ino in range(2, 2 + FILES)),
            *(PutChunks(ino, {0: b"old"}) for ino in range(2, 2 + FILES)),
        )


async def assert_nothing_is_hidden(backend: RedisBackend, scope: str) -> None:
    """Check that the list names the scope if it has any key."""
    keys = [key for key in backend.leftover_data(scope) if not key.endswith(":lease")]
    assert bool(await listed(backend, scope)) == bool(keys), keys


def each_step(run: Callable[[int], Awaitable[int]]) -> None:
    """Call *run* with 1, 2, 3 … until it says that it had fewer commands than that."""
    at = 1
    while trio.run(run, at) >= at:
        at += 1
    assert at > 3, "nothing was interrupted"


def test_a_mount_at_every_moment_of_a_destroy(redis_backend: RedisBackend, new_scope: Callable[[], str]) -> None:
    async def run(at: int) -> int:
        scope = new_scope()
        await write_scope(redis_backend, scope)
        holding: list[bool] = []
        mounting = redis_backend.open()

        async def mount() -> None:
            with suppress(*EXPECTED):
                claim = await mounting.claim(scope, remote_owner(), ClaimTerms())
                holding.append(claim.created)

        store = redis_backend.open()
        interruption = Interruption(store, at, mount)
        with suppress(*EXPECTED):
            await store.drop(scope)
        await assert_nothing_is_hidden(redis_backend, scope)
        if holding:
            assert [summary.name for summary in await listed(redis_backend, scope)] == [scope]
            assert bool((await stored(redis_backend, scope)).inodes) is not holding[0]
        await mounting.aclose()
        await store.aclose()
        return interruption.commands

    each_step(run)


def test_a_destroy_at_every_moment_of_a_mount(redis_backend: RedisBackend, new_scope: Callable[[], str]) -> None:
    async def run(at: int) -> int:
        scope = new_scope()
        await write_scope(redis_backend, scope)
        store = redis_backend.open()

        async def destroy() -> None:
            redis_backend.expire_lease(scope)
            with suppress(*EXPECTED):
                await drop(redis_backend, scope)

        interruption = Interruption(store, at, destroy)
        with suppress(*EXPECTED):
            claim = await store.claim(scope, remote_owner(), ClaimTerms())
            assert [summary.name for summary in await listed(redis_backend, scope)] == [scope]
            assert claim.created or (await stored(redis_backend, scope)).inodes
        await assert_nothing_is_hidden(redis_backend, scope)
        await store.aclose()
        return interruption.commands

    each_step(run)


def test_a_second_destroy_and_a_mount_at_every_moment_of_a_destroy(
    redis_backend: RedisBackend, new_scope: Callable[[], str]
) -> None:
    """The new scope of this name keeps what is written to it: the first destroy has nothing left to delete."""

    async def run(at: int) -> int:
        scope = new_scope()
        await write_scope(redis_backend, scope)
        written: list[bool] = []

        async def destroy_and_mount() -> None:
            with suppress(*EXPECTED):
                await drop(redis_backend, scope)
                await write_scope(redis_backend, scope)
                written.append(True)

        store = redis_backend.open()
        interruption = Interruption(store, at, destroy_and_mount)
        if at > 2:  # before the two commands that begin the drop the new scope would simply be destroyed
            with suppress(*EXPECTED):
                await store.drop(scope)
            await assert_nothing_is_hidden(redis_backend, scope)
            if written:
                found = await stored(redis_backend, scope)
                assert (len(found.inodes), len(found.entries), len(found.chunks)) == (FILES, FILES, FILES)
        await store.aclose()
        return max(interruption.commands, 2)

    each_step(run)


def test_mounts_and_destroys_at_the_same_time(durable_backend: DurableBackend, scope: str) -> None:
    async def mount_again_and_again() -> None:
        for _ in range(15):
            with suppress(*EXPECTED):
                async with claimed(durable_backend, scope) as writer:
                    await writer.commit(PutInode(2, regular()))
                    names = [summary.name for summary in await writer.store.scopes()]
                    assert scope in names, "a scope that is mounted is not in the list"

    async def destroy_again_and_again() -> None:
        for _ in range(15):
            with suppress(*EXPECTED):
                await drop(durable_backend, scope)

    # Processes, as daemons and commands are: one process has an SQLite file open once.
    fork = multiprocessing.get_context("fork")
    works = [mount_again_and_again, destroy_again_and_again] * 2
    processes = [fork.Process(target=trio.run, args=(work,)) for work in works]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(processes), "see the tracebacks above"
