"""A limit on the memory of the daemon. A change that grows gets ENOSPC before the OOM killer ends the mount for all.

What counts is resident memory: the tree, and everything besides it. Only what removed content has left does not count,
because the next content takes it. So a mount that was filled and emptied takes writes again.
"""

import errno

from vfsd.errors import FsError
from vfsd.scope.resident_memory import ResidentMemory, estimated_size
from vfsd.tree.tree import Tree

_SAMPLE_AFTER = 4 << 20
"""Bytes by which the tree grows before memory is measured again: in a burst of writes a timer would be too late."""


class MemoryLimit:
    """Refuses growth beyond *limit* bytes of memory. 0 means no limit.

    Between two samples memory is assumed to change as the tree does.
    """

    def __init__(self, limit: int) -> None:
        self.resident = ResidentMemory()
        self.has_refused = False
        """Whether growth was refused since somebody set this to False."""
        self._limit = limit

    @property
    def is_set(self) -> bool:
        """Whether there is a limit at all."""
        return self._limit > 0

    def sample(self, tree: Tree) -> None:
        """Measure how much memory this process has."""
        self.resident.sample(tree)

    def check(self, tree: Tree, more: int) -> None:
        """Refuse to make *tree* larger by *more* bytes if memory would exceed the limit. Errors: ENOSPC."""
        if not self._limit:
            return
        if estimated_size(tree) - self.resident.tree_size > _SAMPLE_AFTER:
            self.sample(tree)
        if self._used(tree) + more <= self._limit:
            return
        self.sample(tree)
        if self._used(tree) + more > self._limit:
            self.has_refused = True
            raise FsError(errno.ENOSPC, "the daemon may not grow beyond its --max-memory")

    def _used(self, tree: Tree) -> int:
        sampled = self.resident
        return sampled.resident - sampled.reusable + estimated_size(tree) - sampled.tree_size
