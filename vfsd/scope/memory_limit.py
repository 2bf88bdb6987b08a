"""A cap on the daemon's own memory: ENOSPC for what makes it grow, before the OOM killer ends the mount for all."""

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
"""Bytes that an inode and its entry take in memory, roughly and rather too many."""


class MemoryLimit:
    """Refuses growth beyond *limit* bytes of resident memory; 0 is no limit.

    Resident memory is sampled now and then; in between it is taken to grow as the tree does.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._resident = 0
        self._held = 0
        self._measuring = True

    @property
    def is_set(self) -> bool:
        """Whether there is a limit at all."""
        return self._limit > 0

    def sample(self, tree: Tree) -> None:
        """Measure what this process has resident (:manpage:`proc_pid_statm(5)`), if there is a descriptor for that."""
        if not self._limit:
            return
        try:
            resident = int(_STATM.read_text().split()[1]) * _PAGE
        except OSError as error:
            if self._measuring:
                _log.warning("cannot measure the daemon's memory, estimating from now on: %s", error.strerror)
            self._measuring = False
            return
        self._measuring = True
        self._resident, self._held = resident, _held(tree)

    def check(self, tree: Tree, more: int) -> None:
        """Refuse what makes *tree* larger by *more* bytes if memory would exceed the limit. Errors: ENOSPC."""
        if self._limit and self._resident + _held(tree) - self._held + more > self._limit:
            raise FsError(errno.ENOSPC, "the daemon may not grow beyond its --max-memory")


def _held(tree: Tree) -> int:
    return tree.content_bytes + len(tree.inodes) * _PER_FILE
