"""The resident memory of this process beside the tree that it serves, and how much of it is free and could be returned.

The C library keeps freed memory for the next allocation: a removed file leaves the tree at once, and the process keeps
its pages. Asking the allocator how much of its memory is free takes longer the more of it there is. So freed memory is
found by comparing two figures that cost nothing: resident memory, and the estimated size of the tree.
"""

import logging
import os
import sys
from collections import deque
from pathlib import Path

from vfsd.tree.tree import Tree

_log = logging.getLogger(__name__)

_STATM = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PER_FILE = 1024
"""Bytes that an inode and its entry take in memory, measured for empty files, and rounded up."""
_LEAST_EXCESS = 16 << 20
"""Bytes of freed memory that are always left to the allocator, for the next writes."""
_SHARE = 16
"""Freed memory of less than resident memory divided by this is also left: a return costs time for all that is kept."""
_MOST_EXCESS = 512 << 20
"""More freed memory than this is returned without waiting for further samples: one return must not take long."""
_SAMPLES = 3
"""Memory must have been free in so many samples in a row: what is used again at once would have to be mapped again."""


def estimated_size(tree: Tree) -> int:
    """Return the bytes that *tree* takes in memory, roughly."""
    return tree.content_bytes + len(tree.inodes) * _PER_FILE


class ResidentMemory:
    """Samples of resident memory and of a tree's size, all in bytes.

    Their difference is what the process takes besides the tree. ``excess`` is how much this difference exceeds the
    smallest one since memory was last returned to the system. It is memory of requests under way, or freed memory.
    """

    def __init__(self) -> None:
        self.resident = 0
        self.tree_size = 0
        self._smallest_difference = sys.maxsize
        self._largest_tree = 0
        self._excesses: deque[int] = deque(maxlen=_SAMPLES)
        self._can_measure = True

    def sample(self, tree: Tree) -> None:
        """Measure the resident memory of this process (:manpage:`proc_pid_statm(5)`), and the size of *tree*.

        If that fails, for example because no file descriptor is left, the last sample stays in use.
        """
        try:
            resident = int(_STATM.read_text().split()[1]) * _PAGE
        except OSError as error:
            if self._can_measure:
                _log.warning("cannot measure the daemon's memory, estimating from now on: %s", error.strerror)
            self._can_measure = False
            return
        self._can_measure = True
        self.record(resident, estimated_size(tree))

    def record(self, resident: int, tree_size: int) -> None:
        """Take *resident* and *tree_size* as the present figures."""
        self.resident, self.tree_size = resident, tree_size
        self._smallest_difference = min(self._smallest_difference, resident - tree_size)
        self._largest_tree = max(self._largest_tree, tree_size)

    @property
    def excess(self) -> int:
        """Resident memory that neither the tree takes nor what was there besides it at the least."""
        return self.resident - self.tree_size - self._smallest_difference if self.resident else 0

    @property
    def reusable(self) -> int:
        """Resident memory that content removed since the last return has left: new content takes it first."""
        return min(self.excess, self._largest_tree - self.tree_size)

    def is_return_due(self) -> bool:
        """Whether much memory has been free for a while, or very much now. Call it once after each periodic sample."""
        self._excesses.append(self.excess)
        lasting = min(self._excesses) if len(self._excesses) == _SAMPLES else 0
        return lasting > max(_LEAST_EXCESS, self.resident // _SHARE) or self.excess > _MOST_EXCESS

    def returned(self, tree: Tree) -> None:
        """Begin again with a sample of *tree*: free memory was returned to the system."""
        self._excesses.clear()
        self._smallest_difference = sys.maxsize
        self._largest_tree = 0
        self.record(self.resident, self.tree_size)  # these count if the next line cannot measure
        self.sample(tree)
