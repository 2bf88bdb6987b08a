"""The stronger fsync: wait until replicas, or the server's own disk, have everything that was committed.

``WAIT`` and ``WAITAOF`` cover only what their own connection wrote (Redis documentation). So that connection renews the
lease first: a confirmation of this write includes every commit before it. One wait runs at a time. All callers that
come while a wait runs share the next one.
"""

import trio

from vfsd.errors import Fenced, StoreError, StoreRefused, StoreUnreachable
from vfsd.store.base import Fsync
from vfsd.store.redis.admin import RedisAdmin
from vfsd.store.redis.connection import FencedConnection

_SERVER_SHARE = 0.8
"""The part of the time-out that the server may wait for confirmations. Its answer arrives in the rest."""


class DurabilityWait:
    """Waits until *admin*'s server confirms what *fsync* asks, for the scope of *connection*.

    Each caller waits at most *timeout* seconds.
    """

    def __init__(self, admin: RedisAdmin, connection: FencedConnection, fsync: Fsync, timeout: float) -> None:
        self._admin = admin
        self._connection = connection
        self._fsync = fsync
        self._timeout = timeout
        self._waiting = trio.Lock()
        self._threads = trio.CapacityLimiter(1)
        self._begun = 0
        self._failure: StoreError | None = None

    async def confirm(self) -> None:
        """Wait until all commits before this call are confirmed. Raises StoreRefused, StoreUnreachable, Fenced."""
        mine = self._begun + 1
        try:
            with trio.fail_after(self._timeout):
                async with self._waiting:
                    if self._begun < mine:
                        await self._wait()
        except trio.TooSlowError:
            raise StoreUnreachable(f"fsync: the store {self._admin.label} did not confirm in time") from None
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    async def _wait(self) -> None:
        """Ask the server once, for all callers that wait for the lock."""
        self._begun += 1
        self._failure = StoreUnreachable(f"fsync: the store {self._admin.label} did not confirm in time")
        try:
            await trio.to_thread.run_sync(self._ask, abandon_on_cancel=True, limiter=self._threads)
        except StoreError as error:
            self._failure = error
        else:
            self._failure = None

    def _ask(self) -> None:
        replicas, aof = self._fsync
        wait_ms = int(self._timeout * 1000 * _SERVER_SHARE)
        waiting: list[bytes | str | int] = ["WAIT", replicas, wait_ms]
        if aof:
            waiting = ["WAITAOF", 1, replicas, wait_ms]
        renewed, confirmed = self._admin.pipeline([self._connection.renewal(), waiting])
        if renewed[0] != b"renewed":
            raise Fenced(f"fsync of a scope that is lost: {self._admin.label}")
        on_disk, copies = confirmed if aof else (0, confirmed)
        if (aof and not on_disk) or copies < replicas:
            raise StoreRefused(
                f"fsync: {copies} of {replicas} replicas"
                + (f" and {on_disk} of 1 disks" if aof else "")
                + f" of the store {self._admin.label} confirmed within {wait_ms} ms"
            )
