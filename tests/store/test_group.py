"""Group commit: waiting commits share a flush, each gets its own result, and a cancelled one stops no other."""

from collections.abc import Sequence

import pytest
import trio
import trio.testing

from vfsd.errors import StoreError, StoreFull
from vfsd.store.group import GROUP_BYTES, GroupCommit, Ticket
from vfsd.tree.change import Change, PutChunks


def change(ino: int, size: int = 1) -> Change:
    return Change((PutChunks(ino, {0: bytes(size)}),), grows=True)


class PausedStore:
    """A store whose flush waits until :meth:`open`. It records all groups.

    It refuses changes of inodes in *refused*. Its flush fails with a bug for groups with an inode in *breaking*.
    """

    def __init__(self, refused: frozenset[int] = frozenset(), breaking: frozenset[int] = frozenset()) -> None:
        self.groups: list[list[int]] = []
        self.gate = trio.Semaphore(0)
        self.group = GroupCommit(self._flush, 5.0)
        self.outcomes: dict[int, str] = {}
        self._refused = refused
        self._breaking = breaking

    async def _flush(self, tickets: Sequence[Ticket]) -> None:
        inos = [op.ino for ticket in tickets for op in ticket.change.ops if isinstance(op, PutChunks)]
        await self.gate.acquire()
        if self._breaking & set(inos):
            raise ZeroDivisionError("a bug")
        self.groups.append(inos)
        for ino, ticket in zip(inos, tickets, strict=True):
            ticket.error = StoreFull("no room") if ino in self._refused else None

    async def commit(self, ino: int, size: int = 1) -> None:
        """Commit a change of *ino*, and record its outcome."""
        try:
            await self.group.commit(change(ino, size))
        except (StoreError, ZeroDivisionError) as error:
            self.outcomes[ino] = type(error).__name__
        else:
            self.outcomes[ino] = "stored"

    async def commit_within(self, cancel_scope: trio.CancelScope, ino: int) -> None:
        """Commit a change of *ino*, unless *cancel_scope* is cancelled."""
        with cancel_scope:
            await self.commit(ino)

    async def start_commits(self, nursery: trio.Nursery, inos: Sequence[int], size: int = 1) -> None:
        """Start commits of *inos* in this order, and wait until all of them wait."""
        for ino in inos:
            nursery.start_soon(self.commit, ino, size)
            await trio.testing.wait_all_tasks_blocked()

    def open(self) -> None:
        """Let all groups be flushed from this moment."""
        for _ in range(100):
            self.gate.release()


async def test_a_lone_commit_is_a_group() -> None:
    store = PausedStore()
    store.open()
    await store.commit(2)
    assert store.groups == [[2]]
    assert store.group.pending == 0


async def test_waiting_commits_share_a_group() -> None:
    store = PausedStore()
    async with trio.open_nursery() as nursery:
        await store.start_commits(nursery, [2, 3, 4, 5])
        assert store.group.pending == 4
        store.open()
    assert store.groups == [[2], [3, 4, 5]]
    assert set(store.outcomes.values()) == {"stored"}


async def test_a_group_has_a_size_limit() -> None:
    store = PausedStore()
    async with trio.open_nursery() as nursery:
        await store.start_commits(nursery, [2, 3, 4, 5, 6], GROUP_BYTES // 2)
        store.open()
    assert store.groups == [[2], [3, 4], [5, 6]]


async def test_each_commit_gets_its_own_outcome() -> None:
    store = PausedStore(refused=frozenset({4}))
    async with trio.open_nursery() as nursery:
        await store.start_commits(nursery, [2, 3, 4, 5])
        store.open()
    assert store.outcomes == {2: "stored", 3: "stored", 4: "StoreFull", 5: "stored"}


@pytest.mark.parametrize("culprit", [3, 4, 5])
async def test_no_commit_of_a_group_counts_as_stored_if_the_flush_fails(culprit: int) -> None:
    store = PausedStore(breaking=frozenset({culprit}))
    async with trio.open_nursery() as nursery:
        await store.start_commits(nursery, [2, 3, 4, 5])
        store.open()
    assert store.outcomes == {2: "stored", 3: "ZeroDivisionError", 4: "StoreError", 5: "StoreError"}
    await store.commit(6)
    assert store.outcomes[6] == "stored"


@pytest.mark.parametrize("leaving", [3, 4, 5])
async def test_a_commit_cancelled_while_it_waits_is_not_stored_and_the_others_are(leaving: int) -> None:
    store, leave = PausedStore(), trio.CancelScope()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await store.start_commits(nursery, [2])
            for ino in (3, 4, 5):
                nursery.start_soon(store.commit_within, leave if ino == leaving else trio.CancelScope(), ino)
                await trio.testing.wait_all_tasks_blocked()
            leave.cancel()
            await trio.testing.wait_all_tasks_blocked()
            store.open()
            await store.start_commits(nursery, [6])
    assert sorted(ino for group in store.groups for ino in group) == sorted({2, 3, 4, 5, 6} - {leaving})
    assert store.group.pending == 0


async def test_if_the_leader_is_cancelled_another_commit_leads() -> None:
    store, leave = PausedStore(), trio.CancelScope()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.commit_within, leave, 2)
            await trio.testing.wait_all_tasks_blocked()
            await store.start_commits(nursery, [3, 4])
            leave.cancel()
            await trio.testing.wait_all_tasks_blocked()
            store.open()
    assert store.groups == [[3, 4]]


async def test_if_the_next_leader_is_cancelled_when_it_is_woken_the_one_after_it_leads() -> None:
    store, leave = PausedStore(), trio.CancelScope()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await store.start_commits(nursery, [2])
            nursery.start_soon(store.commit_within, leave, 3)
            await trio.testing.wait_all_tasks_blocked()
            await store.start_commits(nursery, [4, 5])
            leave.cancel()
            store.open()  # before trio runs another task: 2 is answered and wakes 3, which is cancelled already
    assert sorted(ino for group in store.groups for ino in group) == [2, 4, 5]
