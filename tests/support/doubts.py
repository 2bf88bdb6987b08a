"""A commit whose answer comes late, for tests of what goes on until then."""

import trio

from vfsd.errors import InDoubt


class StoredAfterAll(InDoubt):
    """A doubt about a commit that was stored, which is known once *resolved* is set."""

    def __init__(self) -> None:
        super().__init__("no answer")
        self.resolved = trio.Event()

    async def settled(self) -> bool:
        await self.resolved.wait()
        return True
