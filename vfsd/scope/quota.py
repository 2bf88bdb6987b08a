"""Room for what grows: the limits of the scope and of the daemon's memory, checked against all changes under way.

A change reserves its room when it is planned, and gives it back when it is applied or has failed. So writers that run
side by side cannot each take the last byte.
"""

from collections.abc import Callable

from vfsd.scope.hooks import Effects, Usage
from vfsd.scope.memory_limit import MemoryLimit
from vfsd.tree.change import Change, Limits
from vfsd.tree.limits import check_limits, growth, new_files
from vfsd.tree.tree import Tree


class Quota:
    """Decides whether a change of *tree* fits within *limits* and *memory*.

    *unstored* returns what the tree holds and the scope does not: that takes memory only. ``is_bounded`` says that
    there is any limit; without one nothing needs to be reserved.
    """

    def __init__(self, tree: Tree, limits: Limits, memory: MemoryLimit, unstored: Callable[[], Usage]) -> None:
        self.is_bounded = any(limits) or memory.is_set
        self._tree = tree
        self._limits = limits
        self._memory = memory
        self._unstored = unstored
        self._content = 0
        self._files = 0

    def reserve(self, effects: Effects) -> Usage:
        """Reserve room for what *effects* store, and return how much. Errors: ENOSPC, EFBIG."""
        change, newly_stored = effects.store, effects.newly_stored
        if not (self.is_bounded and change.grows):
            return Usage()
        content, files = max(0, growth(self._tree, change, newly_stored)), new_files(self._tree, change, newly_stored)
        unstored = self._unstored()
        under_way = (self._content - unstored.content, self._files - unstored.files)
        check_limits(self._tree, change, self._limits, under_way, newly_stored)
        self._memory.check(self._tree, self._content + content)
        self._content += content
        self._files += files
        return Usage(content, files)

    def check(self, effects: Effects) -> None:
        """Refuse *effects* if the store has no room for them now, without reserving any. Errors: ENOSPC, EFBIG."""
        self.give_back(self.reserve(effects))

    def check_memory(self, change: Change) -> None:
        """Refuse a *change* of memory alone if the daemon may not grow so far. Errors: ENOSPC."""
        if change.grows:
            self._memory.check(self._tree, self._content + growth(self._tree, change))

    def give_back(self, usage: Usage) -> None:
        """End a reservation: the change was applied, or has failed."""
        self._content -= usage.content
        self._files -= usage.files
