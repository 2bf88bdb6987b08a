"""Locks on inodes: while a change is planned, committed and applied, no other change of the same inodes is planned.

Changes of different inodes run side by side. The kernel already serialises most requests per directory and per inode,
so a lock is rarely waited for; taking free locks does not await. Readers never take a lock.
"""

from collections.abc import Iterable, Sequence

import trio

from vfsd.errors import FsError, InDoubt
from vfsd.scope.hooks import Touched


class InodeLocks:
    """Locks on inode numbers. A caller that must wait takes them in ascending order, so two callers never deadlock."""

    def __init__(self) -> None:
        self._held: dict[int, trio.lowlevel.ParkingLot | None] = {}
        self._in_doubt: dict[int, InDoubt] = {}

    async def acquire(self, touched: Touched) -> tuple[int, ...]:
        """Lock the inodes that *touched* returns, and return them.

        After a wait it asks again, because a name may lead to another inode by then. Raises what *touched* raises, and
        InDoubt if the last change of an inode is in doubt: nobody knows how long that lasts.
        """
        while True:
            inos = touched()
            if self._held.keys().isdisjoint(inos):
                self._held.update(dict.fromkeys(inos))
                return inos
            await self._acquire_in_order(inos)
            try:
                if set(touched()) == set(inos):
                    return inos
            except FsError:
                self.release(inos)
                raise
            self.release(inos)

    async def _acquire_in_order(self, inos: Sequence[int]) -> None:
        taken: list[int] = []
        try:
            for ino in sorted(set(inos)):
                while ino in self._held:
                    await self._wait(ino)
                self._held[ino] = None
                taken.append(ino)
        except BaseException:
            self.release(taken)
            raise

    async def _wait(self, ino: int) -> None:
        if ino in self._in_doubt:
            raise self._in_doubt[ino].with_traceback(None)
        lot = self._held[ino]
        if lot is None:
            lot = self._held[ino] = trio.lowlevel.ParkingLot()
        await lot.park()

    def leave_in_doubt(self, inos: Iterable[int], doubt: InDoubt) -> None:
        """Keep *inos* locked until *doubt* is settled. Those who wait for them, or come later, fail at once."""
        for ino in set(inos):
            self._in_doubt[ino] = doubt
            lot = self._held[ino]
            if lot is not None:
                lot.unpark_all()

    def release(self, inos: Sequence[int]) -> None:
        """Unlock *inos*. Those who wait try again, in no particular order."""
        for ino in inos if len(inos) == 1 else set(inos):
            self._in_doubt.pop(ino, None)
            lot = self._held.pop(ino)
            if lot is not None:
                lot.unpark_all()
