"""The times of a mount's changes: one clock for all, so that what happens later always has the later time.

make, ninja and every other tool that compares the times of different files relies on that order. No time may be ahead
of the system's clock, because such a tool then reports that clock as wrong.
"""

import logging

_log = logging.getLogger(__name__)

MAX_LEAD = 1_000_000_000
"""How far (ns) a time may be ahead of the clock: only after the clock was set back, and never further than this."""


def stamp(now_ns: int, last_ns: int) -> int:
    """Return the time (ns) of a change while the clock shows *now_ns*; *last_ns* is the time of the change before.

    It is the clock's time, or a nanosecond more than *last_ns*. If *last_ns* is further ahead of the clock than
    :data:`MAX_LEAD`, times follow the clock, and the log says so.
    """
    if now_ns > last_ns:
        return now_ns
    lead = last_ns - now_ns
    if lead < MAX_LEAD:
        return last_ns + 1
    _log.warning("the clock is %.1f s behind the last change: times follow the clock", lead / 1e9)
    return now_ns
