"""A transaction that was sent and not answered. :mod:`vfsd.store.redis.connection` settles it."""

from collections.abc import Sequence

import trio

from vfsd.errors import InDoubt
from vfsd.tree.change import Change


class TransactionInDoubt(InDoubt):
    """A transaction with no answer: *stored* is known once *resolved* is set."""

    def __init__(self, message: str, seq: int, changes: Sequence[Change]) -> None:
        super().__init__(message)
        self.seq = seq
        self.changes = changes
        self.stored = False
        self.resolved = trio.Event()

    async def settled(self) -> bool:
        """See :meth:`vfsd.errors.InDoubt.settled`."""
        await self.resolved.wait()
        return self.stored
