"""Locks on inodes: who waits for whom, who is woken, and what happens while a change is in doubt."""

import errno

import pytest
import trio
import trio.testing

from tests.support.in_doubt import LateAnswer
from vfsd.errors import FsError, InDoubt
from vfsd.scope.inode_locks import InodeLocks


class Callers:
    """Callers that lock inodes, and what has happened, in order."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.locks = InodeLocks()
        self.log: list[str] = []
        self._nursery = nursery

    async def start(self, name: str, *inos: int) -> None:
        """Let *name* lock *inos*, as far as it gets."""
        self._nursery.start_soon(self._lock, name, inos)
        await trio.testing.wait_all_tasks_blocked()

    async def release(self, *inos: int) -> None:
        """Unlock *inos*, and let those continue that wait for them."""
        self.locks.release(inos)
        await trio.testing.wait_all_tasks_blocked()

    async def _lock(self, name: str, inos: tuple[int, ...]) -> None:
        try:
            await self.locks.acquire(lambda: inos)
            self.log.append(name)
        except InDoubt:
            self.log.append(f"{name} in doubt")


async def test_free_locks_are_taken_without_a_checkpoint(nursery: trio.Nursery) -> None:
    locks = InodeLocks()
    with trio.CancelScope() as cancelled:
        cancelled.cancel()
        assert await locks.acquire(lambda: (2, 3)) == (2, 3)
    assert not cancelled.cancelled_caught


async def test_different_inodes_do_not_wait_for_each_other(nursery: trio.Nursery) -> None:
    callers = Callers(nursery)
    await callers.start("one", 2)
    await callers.start("other", 3)
    assert callers.log == ["one", "other"]


async def test_who_shares_an_inode_waits_until_it_is_unlocked(nursery: trio.Nursery) -> None:
    callers = Callers(nursery)
    await callers.start("first", 2, 3)
    await callers.start("second", 3, 4)
    assert callers.log == ["first"]
    await callers.release(2, 3)
    assert callers.log == ["first", "second"]


async def test_who_waits_keeps_what_it_has_so_that_it_is_not_overtaken_for_ever(nursery: trio.Nursery) -> None:
    callers = Callers(nursery)
    await callers.start("first", 5)
    await callers.start("both", 4, 5)
    await callers.start("late", 4)
    assert callers.log == ["first"]
    await callers.release(5)
    assert callers.log == ["first", "both"]
    await callers.release(4, 5)
    assert callers.log == ["first", "both", "late"]


async def test_callers_that_name_the_same_inodes_in_another_order_do_not_deadlock(nursery: trio.Nursery) -> None:
    callers = Callers(nursery)
    await callers.start("first", 2, 3)
    await callers.start("ascending", 2, 3)
    await callers.start("descending", 3, 2)
    await callers.release(2, 3)
    await callers.release(2, 3)
    assert sorted(callers.log) == ["ascending", "descending", "first"]


async def test_an_inode_may_be_named_twice(nursery: trio.Nursery) -> None:
    callers = Callers(nursery)
    await callers.start("first", 2, 2)
    await callers.start("second", 2, 2)
    await callers.release(2, 2)
    assert callers.log == ["first", "second"]


async def test_after_a_wait_it_is_asked_again_what_is_touched(nursery: trio.Nursery) -> None:
    locks, meaning = InodeLocks(), [2]
    await locks.acquire(lambda: (2,))
    found: list[tuple[int, ...]] = []

    async def lock() -> None:
        found.append(await locks.acquire(lambda: (meaning[0],)))

    nursery.start_soon(lock)
    await trio.testing.wait_all_tasks_blocked()
    meaning[0] = 3
    locks.release((2,))
    await trio.testing.wait_all_tasks_blocked()
    assert found == [(3,)]
    assert await locks.acquire(lambda: (2,)) == (2,)


async def test_what_is_touched_may_be_gone_after_a_wait(nursery: trio.Nursery) -> None:
    locks, is_gone = InodeLocks(), False

    def touched() -> tuple[int, ...]:
        if is_gone:
            raise FsError(errno.ESTALE)
        return (2,)

    async def lock() -> None:
        with pytest.raises(FsError):
            await locks.acquire(touched)

    await locks.acquire(touched)
    nursery.start_soon(lock)
    await trio.testing.wait_all_tasks_blocked()
    is_gone = True
    locks.release((2,))
    await trio.testing.wait_all_tasks_blocked()
    assert await locks.acquire(lambda: (2,)) == (2,)


async def test_who_is_cancelled_leaves_nothing_locked(nursery: trio.Nursery) -> None:
    callers, cancelled = Callers(nursery), trio.CancelScope()
    await callers.start("first", 3)

    async def lock() -> None:
        with cancelled:
            await callers.locks.acquire(lambda: (2, 3))

    nursery.start_soon(lock)
    await trio.testing.wait_all_tasks_blocked()
    cancelled.cancel()
    await trio.testing.wait_all_tasks_blocked()
    await callers.start("second", 2)
    assert callers.log == ["first", "second"]


async def test_an_inode_in_doubt_fails_those_who_wait_and_those_who_come_until_it_is_released(
    nursery: trio.Nursery,
) -> None:
    callers = Callers(nursery)
    await callers.start("first", 2)
    await callers.start("waiting", 2)
    callers.locks.leave_in_doubt((2,), LateAnswer())
    await trio.testing.wait_all_tasks_blocked()
    await callers.start("late", 2, 3)
    await callers.start("elsewhere", 3)
    assert callers.log == ["first", "waiting in doubt", "late in doubt", "elsewhere"]
    await callers.release(2)
    await callers.start("after", 2)
    assert callers.log[-1] == "after"
