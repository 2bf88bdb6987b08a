"""A limit on the memory of the daemon. A change that grows gets ENOSPC before the OOM killer ends the mount for all."""

import errno
import logging
import os
from pathlib import Path

from vfsd.errors import FsError
from vfsd.tree.tree import Tree

_log = logging.getLogger(__name__)

_STATM = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PER_FILE = 2048
"""Bytes that an inode and its entry take in memory: a rough estimate, rather too high."""


class MemoryLimit:
    """Refuses growth beyond *limit* bytes of resident memory. 0 means no limit.

    Resident memory is measured now and then. In between it is assumed to grow as the tree does.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._resident = 0
        self._estimate_then = 0
        self._can_measure = True

    @property
    def is_set(self) -> bool:
        """Whether there is a limit at all."""
        return self._limit > 0

    def sample(self, tree: Tree) -> None:
        """Measure the resident memory of this process (:manpage:`proc_pid_statm(5)`).

        If that fails, for example because no file descriptor is left, the last measurement stays in use.
        """
        if not self._limit:
            return
        try:
            resident = int(_STATM.read_text().split()[1]) * _PAGE
        except OSError as error:
            if self._can_measure:
                _log.warning("cannot measure the daemon's memory, estimating from now on: %s", error.strerror)
            self._can_measure = False
            return
        self._can_measure = True
        self._resident, self._estimate_then = resident, _estimate(tree)

    def check(self, tree: Tree, more: int) -> None:
        """Refuse to make *tree* larger by *more* bytes if memory would exceed the limit. Errors: ENOSPC."""
        if self._limit and self._resident + _estimate(tree) - self._estimate_then + more > self._limit:
            raise FsError(errno.ENOSPC, "the daemon may not grow beyond its --max-memory")


def _estimate(tree: Tree) -> int:
    return tree.content_bytes + len(tree.inodes) * _PER_FILE
