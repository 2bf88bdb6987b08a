"""Turns: while a change of an inode is planned, committed and applied, no other change of it is planned.

Changes of different inodes run side by side. The kernel already serialises most requests per directory and per
inode, so a turn is rarely waited for; taking a free one is synchronous. Readers never take a turn.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import trio

from vfsd.errors import FsError, InDoubt

Touched: TypeAlias = Callable[[], tuple[int, ...]]
"""Names the inodes that a change would touch, as things stand."""


class InodeLocks:
    """Who has the turn on which inode numbers. Numbers are taken in ascending order, so no two wait for each other."""

    def __init__(self) -> None:
        self._held: dict[int, trio.lowlevel.ParkingLot | None] = {}
        self._in_doubt: dict[int, InDoubt] = {}

    async def take(self, inos: Sequence[int]) -> bool:
        """Take the turn on all *inos*; return whether that meant waiting, so that things may have changed.

        Raises the InDoubt of an inode whose last change is in doubt: nobody knows how long that will last.
        """
        waited = False
        taken: list[int] = []
        try:
            for ino in inos if len(inos) == 1 else sorted(set(inos)):
                while ino in self._held:
                    waited = True
                    await self._wait(ino)
                self._held[ino] = None
                taken.append(ino)
        except BaseException:
            self.give_back(taken)
            raise
        return waited

    async def take_all(self, touched: Touched) -> tuple[int, ...]:
        """Take the turn on what is *touched*; look again after a wait, for a name may mean another inode by then.

        Return the numbers. Raises as :meth:`take`, and what *touched* does.
        """
        while True:
            inos = touched()
            waited = await self.take(inos)
            try:
                if not waited or set(touched()) == set(inos):
                    return inos
            except FsError:
                self.give_back(inos)
                raise
            self.give_back(inos)

    async def _wait(self, ino: int) -> None:
        if ino in self._in_doubt:
            raise self._in_doubt[ino].with_traceback(None)
        lot = self._held[ino]
        if lot is None:
            lot = self._held[ino] = trio.lowlevel.ParkingLot()
        await lot.park()

    def leave_in_doubt(self, inos: Iterable[int], doubt: InDoubt) -> None:
        """Keep the turn on all *inos* until *doubt* is settled; those who wait for it, or come, fail at once."""
        for ino in set(inos):
            self._in_doubt[ino] = doubt
            lot = self._held[ino]
            if lot is not None:
                lot.unpark_all()

    def give_back(self, inos: Sequence[int]) -> None:
        """End the turn on all *inos*, and let those who wait try again, in no particular order."""
        for ino in inos if len(inos) == 1 else set(inos):
            self._in_doubt.pop(ino, None)
            lot = self._held.pop(ino)
            if lot is not None:
                lot.unpark_all()
