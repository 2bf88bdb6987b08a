"""What takes part in every change: the interface of hooks, and of caches that must be told of changes.

Some features need a say in every change: files that are shown and not stored, directory times that move with content
far below, writes that wait for the next one. They implement :class:`Hook` and are handed to the pipeline when it is
built. The pipeline itself knows none of them, and a hook that has nothing to do costs one test.

A hook never awaits, never commits and never changes the tree. It adds to a change while that is planned, and keeps its
own records up to date when memory takes the change.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from vfsd.tree.change import Change, Op

NOTHING = Change((), grows=False)
"""The change that changes nothing."""

Touched: TypeAlias = Callable[[], tuple[int, ...]]
"""Returns the inodes that a change would touch, as the tree is now."""

Plan: TypeAlias = Callable[[int], Change]
"""Plans a change for the time it is given (ns). Raises FsError."""


class Mutation(NamedTuple):
    """A change to be made: the inodes it touches, how it is planned, and what it is, for the log."""

    touched: Touched
    plan: Plan
    what: str


@dataclass(slots=True)
class Effects:
    """What one change does: *memory* is what memory gets, *store* is what the store gets.

    Both are the same object unless memory holds something that is not stored. *newly_stored* are inodes that memory has
    already and the store gets now. *untold* are more operations that the kernel must hear of, because it cannot know
    them from its own request.
    """

    memory: Change
    store: Change = NOTHING
    newly_stored: frozenset[int] = frozenset()
    untold: tuple[Op, ...] = ()


class Usage(NamedTuple):
    """Bytes of content, and files of all kinds."""

    content: int = 0
    files: int = 0


class Hook:
    """Takes part in every change of one scope. The methods here do nothing: override what is needed.

    While ``active`` is False the pipeline only tests that flag, and asks nothing, with three exceptions: about a change
    that puts or drops an entry with one of the names ``wakes_on``, it asks for additions and tells of the change; it
    tells of every change whose two halves differ; and ``unstored`` always counts.
    """

    active: bool = False
    wakes_on: frozenset[bytes] = frozenset()

    def touched(self, inos: tuple[int, ...]) -> Iterable[int]:
        """Return the inodes that a change of *inos* also touches. They are locked too."""
        return ()

    def touched_below(self, directory: int) -> Iterable[int]:
        """Return the inodes below *directory* that a rename of it also touches."""
        return ()

    def additions(self, change: Change, now_ns: int) -> tuple[Op, ...]:
        """Return operations that must be part of *change*, planned for *now_ns*. They come before its own.

        The inodes in them are locked as well; the change is planned again if they were not. Asked each time a change is
        planned.
        """
        return ()

    def later(self, change: Change) -> int:
        """Return the time (ns) at which *change*, which has its additions, must be planned again. It is near.

        0 means: it can be made as it is.
        """
        return 0

    def effects(self, effects: Effects, inos: tuple[int, ...], now_ns: int) -> Effects:
        """Return *effects* with what the store must get. *inos* are locked. Raises FsError.

        Every hook gets the result of the hook before it.
        """
        return effects

    def applying(self, effects: Effects) -> None:
        """Prepare for *effects*, which memory takes right after this."""

    def applied(self, effects: Effects, inos: tuple[int, ...]) -> Mutation | None:
        """Record *effects*, which memory has just taken; *inos* are still locked.

        Return a change that must be made before the caller is answered, if there is one.
        """
        return None

    @property
    def unstored(self) -> Usage:
        """What memory holds because of this hook and the store does not."""
        return Usage()


class KernelCache(Protocol):
    """What the kernel has cached of the mount, and how to make it forget."""

    async def forget(self, change: Change) -> None:
        """Return when nothing is cached that *change* made untrue. A request handler must not await this."""

    def forget_attributes(self, inos: Iterable[int]) -> None:
        """Drop the cached attributes of directories. Returns at once; a request handler may call it."""


class NoKernelCache:
    """For a scope that is used without a mount: nobody caches."""

    async def forget(self, change: Change) -> None:
        """See :meth:`KernelCache.forget`."""

    def forget_attributes(self, inos: Iterable[int]) -> None:
        """See :meth:`KernelCache.forget_attributes`."""
