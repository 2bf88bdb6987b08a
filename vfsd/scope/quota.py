"""Room for what grows: the limits of the scope and the daemon's memory, held against all changes under way at once.

A change reserves its room when it is planned and gives it back when it is applied or has failed, so that writers side
by side cannot each take the last byte.
"""

from typing import NamedTuple

from vfsd.scope.memory_limit import MemoryLimit
from vfsd.seeds.index import SeedIndex
from vfsd.seeds.translate import Step
from vfsd.tree.change import Change, Limits
from vfsd.tree.limits import check_limits, growth, new_files
from vfsd.tree.tree import Tree


class Demand(NamedTuple):
    """Room that a change takes: bytes of content, and new files."""

    content: int = 0
    files: int = 0


_NOTHING = Demand()


class Quota:
    """Decides whether a change of *tree* still fits within *limits* and *memory*.

    What is in *ledger* is not the scope's: it takes memory only.
    """

    def __init__(self, tree: Tree, limits: Limits, memory: MemoryLimit, ledger: SeedIndex) -> None:
        self._tree = tree
        self._ledger = ledger
        self._limits = limits
        self._memory = memory
        self._is_bounded = any(limits) or memory.is_set
        self._content = 0
        self._files = 0

    def reserve(self, step: Step) -> Demand:
        """Reserve room for what *step* stores. Errors: ENOSPC, EFBIG."""
        change, fresh = step.store, step.fresh
        if not (self._is_bounded and change.grows):
            return _NOTHING
        demand = Demand(max(0, growth(self._tree, change, fresh)), new_files(self._tree, change, fresh))
        beside = (self._content - self._ledger.content_bytes, self._files - len(self._ledger.homes))
        check_limits(self._tree, change, self._limits, beside, fresh)
        self._memory.check(self._tree, self._content + demand.content)
        self._content += demand.content
        self._files += demand.files
        return demand

    def check(self, step: Step) -> None:
        """Refuse *step* if there is no room for what it stores now, without reserving any. Errors: ENOSPC, EFBIG."""
        self.give_back(self.reserve(step))

    def check_memory(self, change: Change) -> None:
        """Refuse a *change* of memory alone if the daemon may not grow so far. Errors: ENOSPC."""
        if change.grows:
            self._memory.check(self._tree, self._content + growth(self._tree, change))

    def give_back(self, demand: Demand) -> None:
        """End a reservation: the tree holds it now, or never will."""
        self._content -= demand.content
        self._files -= demand.files
