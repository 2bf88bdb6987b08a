"""The times of a mount's changes: one clock for all, so that what happens later always has the later time.

make, ninja and every other tool that compares the times of different files relies on that order. No time may be ahead
of the system's clock, because such a tool then reports that clock as wrong.
"""

import logging

from vfsd import clock

_log = logging.getLogger(__name__)

MAX_LEAD = 1_000_000_000
"""How far (ns) a time may be ahead of the clock: only after the clock was set back, and never further than this."""


class Stamps:
    """Gives each change its time: the clock's, or a nanosecond more than *last_ns*, the time of the change before.

    If *last_ns* is further ahead of the clock than :data:`MAX_LEAD`, times follow the clock, and the log says so.
    """

    def __init__(self, last_ns: int) -> None:
        self._last_ns = last_ns

    def next(self) -> int:
        """Return the time (ns) of a change that is planned now."""
        now_ns = clock.now()
        if now_ns <= self._last_ns:
            now_ns = self._behind(now_ns)
        self._last_ns = now_ns
        return now_ns

    def _behind(self, now_ns: int) -> int:
        """Return the time of a change while the clock shows *now_ns*, which the change before had, or a later one."""
        lead = self._last_ns - now_ns
        if lead < MAX_LEAD:
            return self._last_ns + 1
        _log.warning("the clock is %.1f s behind the last change: times follow the clock", lead / 1e9)
        return now_ns
