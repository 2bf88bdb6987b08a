"""The last transactions that were acknowledged, for a server that comes back without them.

Redis acknowledges before its disk and its replicas have a commit: after a crash with ``appendfsync everysec``, or a
failover, the last moments may be missing. ``seq`` in the header shows it, and what is missing is stored again from
here. Operations carry whole records, so storing one twice is harmless.
"""

from collections import deque
from collections.abc import Sequence

from vfsd.tree.change import Change, content_size

_TRANSACTIONS = 4096
_BYTES = 32 << 20
"""What is remembered at most: a good deal more than a second of a busy mount. Chunks are shared with the tree."""


class History:
    """Changes by the number (``seq``) of the transaction that stored them, the oldest forgotten first."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, Sequence[Change], int]] = deque()
        self._bytes = 0

    def remember(self, seq: int, changes: Sequence[Change]) -> None:
        """Add the transaction *seq*, the successor of the last one added."""
        size = content_size(changes)
        self._kept.append((seq, changes, size))
        self._bytes += size
        while len(self._kept) > _TRANSACTIONS or self._bytes > _BYTES:
            self._bytes -= self._kept.popleft()[2]

    def after(self, seq: int) -> list[tuple[int, Sequence[Change]]] | None:
        """Return the transactions that followed *seq*, in order; None if they are not all remembered."""
        missing = [(number, changes) for number, changes, _ in self._kept if number > seq]
        return missing if missing and missing[0][0] == seq + 1 else None
