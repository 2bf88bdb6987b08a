"""A commit whose answer comes late, for tests of what happens until then."""

import trio

from vfsd.errors import InDoubt


class LateAnswer(InDoubt):
    """An :class:`InDoubt` of a commit that was stored. The answer comes when *resolved* is set."""

    def __init__(self) -> None:
        super().__init__("no answer")
        self.resolved = trio.Event()

    async def settled(self) -> bool:
        await self.resolved.wait()
        return True
