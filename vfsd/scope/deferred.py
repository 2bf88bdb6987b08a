"""What memory has and the store has not yet: files emptied by ``open(O_TRUNC)``, and directories' times.

The store gets a truncation with the next change of the file, or when it is closed; nothing else may wait so. Times that
moved with that, or with a seeding, it gets with the next change that is to show in them. This keeps the books, and
catches up by changes like any other.
"""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeAlias

from vfsd.errors import StoreError
from vfsd.scope.background import BackgroundTasks
from vfsd.seeds.index import SeedIndex
from vfsd.tree.change import Change, DropChunks, DropInode, PutInode
from vfsd.tree.tree import Tree

Make: TypeAlias = Callable[[Callable[[], tuple[int, ...]], Callable[[int], Change]], Awaitable[object]]
"""Makes a change, as :meth:`vfsd.scope.pipeline.Changes.make` does."""


class DeferredWrites:
    """The emptied files of *tree* by their inode numbers, and the directories with such times; *make* stores them.

    *ledger* is what the store is not to get at all. *beside* carries on with what outlives a request.
    """

    def __init__(self, tree: Tree, ledger: SeedIndex, make: Make, beside: BackgroundTasks) -> None:
        self._tree = tree
        self._ledger = ledger
        self._make = make
        self._beside = beside
        self._files: set[int] = set()
        self._directories: set[int] = set()

    def __contains__(self, ino: int) -> bool:
        """Whether the store still has what file *ino* held before it was opened with O_TRUNC."""
        return ino in self._files

    def emptied(self, ino: int, moved: tuple[int, ...]) -> None:
        """Enter file *ino*, and the directories of which that *moved* the times."""
        self._files.add(ino)
        self.moved(moved)

    def moved(self, directories: Iterable[int]) -> None:
        """Enter those of *directories*, of which the times have moved in memory alone, that are stored."""
        self._directories.update(ino for ino in directories if ino not in self._ledger.homes)

    def seeded(self, change: Change) -> None:
        """Take note of what a seeding has done to memory alone: seeds that went are owed to nobody."""
        self._files.difference_update(op.ino for op in change.ops if isinstance(op, DropInode))
        self.moved(op.ino for op in change.ops if isinstance(op, PutInode) and op.attributes.is_directory)

    def owed(self, directories: Iterable[int]) -> set[int]:
        """Return those of *directories* of which the store has not the present times."""
        return self._directories.intersection(directories)

    def stirred(self, change: Change) -> set[int]:
        """Return the directories of emptied files that *change* stores as they are now, whatever else it is about."""
        emptied = (
            self._files.intersection(op.ino for op in change.ops if isinstance(op, PutInode)) if self._files else ()
        )
        return {parent for ino in emptied for parent in self._tree.inodes[ino].parents}

    def truncations(self, inos: tuple[int, ...]) -> tuple[DropChunks, ...]:
        """Return what the store must do before a change of *inos*."""
        return tuple(DropChunks(ino, None) for ino in self._files.intersection(inos)) if self._files else ()

    def stored(self, inos: Iterable[int], change: Change) -> None:
        """Strike out files *inos*, which the store has as they are, and the directories that *change* told it of."""
        if self._files:
            self._files.difference_update(inos)
        if self._directories:
            self._directories.difference_update(op.ino for op in change.ops if isinstance(op, PutInode | DropInode))

    def clear(self) -> None:
        """Owe the store nothing any more."""
        self._files.clear()
        self._directories.clear()

    # --- catching up

    async def catch_up(self, ino: int) -> None:
        """Store the truncation of *ino*, if no change has taken it along. Raises StoreError."""
        if ino in self._files:
            await self._make(lambda: (ino,), lambda _now_ns: self._as_it_is(ino))

    def _as_it_is(self, ino: int) -> Change:
        inode = self._tree.inodes.get(ino)
        if inode is None or ino not in self._files:
            return Change((), grows=False)
        return Change((PutInode(ino, inode.attributes), DropChunks(ino, None)), grows=False)

    def catch_up_soon(self, ino: int) -> None:
        """See to it that the truncation of *ino* is stored as soon as the store will take it."""
        self._beside.insist(partial(self.catch_up, ino), f"the truncation of inode {ino}")

    async def drain(self) -> None:
        """Store every truncation that is still to be stored, before the end. Raises the last StoreError."""
        failed: StoreError | None = None
        for ino in tuple(self._files):
            try:
                await self.catch_up(ino)
            except StoreError as error:
                failed = error
        if failed is not None:
            raise failed
