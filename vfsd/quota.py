"""Room for what grows: the limits of the scope and the daemon's memory, held against all changes under way at once.

A change reserves its room when it is planned and gives it back when it is applied or has failed, so that writers side
by side cannot each take the last byte.
"""

from typing import NamedTuple

from vfsd.memory import MemoryCap
from vfsd.tree.change import Change, Limits, PutInode
from vfsd.tree.limits import check_limits, growth
from vfsd.tree.tree import Tree


class Demand(NamedTuple):
    """Room that a change takes: bytes of content, and new files."""

    content: int = 0
    files: int = 0


_NOTHING = Demand()


class Quota:
    """Decides whether a change of *tree* still fits within *limits* and *memory*."""

    def __init__(self, tree: Tree, limits: Limits, memory: MemoryCap) -> None:
        self._tree = tree
        self._limits = limits
        self._memory = memory
        self._is_bounded = any(limits) or memory.is_set
        self._content = 0
        self._files = 0

    def reserve(self, change: Change) -> Demand:
        """Reserve room for *change*. Errors: ENOSPC, EFBIG."""
        if not (self._is_bounded and change.grows):
            return _NOTHING
        demand = Demand(max(0, growth(self._tree, change)), self._new_files(change))
        check_limits(self._tree, change, self._limits, (self._content, self._files))
        self._memory.check(self._tree, self._content + demand.content)
        self._content += demand.content
        self._files += demand.files
        return demand

    def give_back(self, demand: Demand) -> None:
        """End a reservation: the tree holds it now, or never will."""
        self._content -= demand.content
        self._files -= demand.files

    def _new_files(self, change: Change) -> int:
        return sum(isinstance(op, PutInode) and op.ino not in self._tree.inodes for op in change.ops)
