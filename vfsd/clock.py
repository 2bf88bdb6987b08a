"""The one clock: nanoseconds since the epoch, and the stamp a modification gets.

Agents compare modification times for equality in milliseconds, so a change must always move the millisecond
that a reader has already been shown. Nothing else in the project may read the time of day for a file.
"""

import time

MILLISECOND = 1_000_000
MAX_LEAD = 1_000 * MILLISECOND
"""How far (ns) a stamp may run ahead of the clock. More than this, and the clock has been set back: follow it."""


def now() -> int:
    """Return the time of day in nanoseconds since 1970-01-01 UTC (:manpage:`clock_gettime(2)`, CLOCK_REALTIME)."""
    return time.time_ns()


def stamp(now_ns: int, last_ns: int, shown: bool) -> int:
    """Return the modification time (ns) for a change made at *now_ns* to what was last modified at *last_ns*.

    Where *shown* says that someone has seen *last_ns*, the stamp lies in a later millisecond, even if that is
    a little ahead of the clock. A stamp that is ahead is not taken back: the clock may still stand in the
    millisecond that was seen before it.
    """
    if last_ns - now_ns > MAX_LEAD:
        return now_ns
    following = (last_ns // MILLISECOND + 1) * MILLISECOND
    return max(now_ns, following if shown else last_ns)
