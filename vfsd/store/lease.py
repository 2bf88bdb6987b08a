"""The lease of one claim: a thread renews it, so a busy event loop does not look like a dead daemon.

A request that keeps the event loop busy for longer than the lease would let a second mount in, although this one lives.
So renewals do not pass through the loop. But a daemon whose loop never runs again must not hold the scope for ever: the
loop sets a *heartbeat*, and the thread stops renewing when it is too old.

The lease only tells others that the owner lives. The epoch in the scope's header makes writing safe.
"""

import functools
import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

import trio

from vfsd.errors import StoreError
from vfsd.store.base import LEASE_SECONDS

LostT = TypeVar("LostT")

_log = logging.getLogger(__name__)

_HUNG_AFTER = 60.0
"""The age (s) of the heartbeat at which the event loop counts as hung."""
_BEAT = 1.0


clock = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""``clock()`` returns seconds of a clock that also runs while the process is stopped, or the host sleeps. Every commit
calls it, so there is no Python function around it."""


class Lease(Generic[LostT]):
    """The lease of *scope*. *renew* renews it, and blocks. It returns None, or why the claim is lost.

    ``ends`` is when the lease ends (:func:`clock`), as far as is known here. *every* is the time (s) between renewals.
    """

    def __init__(
        self,
        scope: str,
        renew: Callable[[], LostT | None],
        *,
        every: float = LEASE_SECONDS / 3,
        hung_after: float = _HUNG_AFTER,
    ) -> None:
        self.ends = 0.0
        self._scope = scope
        self._renew = renew
        self._every = every
        self._hung_after = hung_after
        self._beaten = clock()
        self._stopping = threading.Event()

    def granted(self, asked: float) -> None:
        """Record that the store has granted the lease to a request that was sent at *asked* (:func:`clock`)."""
        self.ends = asked + LEASE_SECONDS

    async def keep(self) -> LostT:
        """Renew the lease until the claim is lost, and return why."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._beat)
            try:
                lost = await trio.to_thread.run_sync(
                    self._renew_until_lost, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1)
                )
            finally:
                self._stopping.set()
            nursery.cancel_scope.cancel()
        assert lost is not None, "without an answer the thread goes on, until this task is cancelled"
        return lost

    async def _beat(self) -> None:
        while True:
            self._beaten = clock()
            await trio.sleep(_BEAT)

    def _renew_until_lost(self) -> LostT | None:
        while not self._stopping.wait(self._every):
            asked = clock()
            if asked - self._beaten > self._hung_after:
                continue
            try:
                lost = self._renew()
            except StoreError as error:
                _log.info("could not renew the lease of scope %s: %s", self._scope, error)
            except Exception:  # noqa: BLE001 (a bug here must not end the mount)
                _log.exception("renewing the lease of scope %s failed by a bug", self._scope)
            else:
                if lost is not None:
                    return lost
                self.granted(asked)
        return None
