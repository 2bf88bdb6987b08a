"""The one clock: nanoseconds since the epoch, and the stamp a modification gets.

Agents compare modification times for equality in milliseconds, so a change must always move the millisecond
that a reader has already been shown. Most programs cut a time off to its millisecond, but Node's ``Stats.mtime``
rounds it: a change has to move both. Nothing else in the project may read the time of day for a file.
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

    Where *shown* says that someone has seen *last_ns*, the stamp lies a whole millisecond later, even if that is
    a little ahead of the clock. A stamp that is ahead is not taken back: the clock may still stand in the
    millisecond that was seen before it.
    """
    if last_ns - now_ns > MAX_LEAD:
        return now_ns
    if shown and (now_ns < last_ns or look_alike(now_ns, last_ns)):
        return last_ns + MILLISECOND
    return max(now_ns, last_ns)


def look_alike(one_ns: int, other_ns: int) -> bool:
    """Return whether a program that knows milliseconds may take two times for one."""
    half = MILLISECOND // 2
    cut_off = one_ns // MILLISECOND == other_ns // MILLISECOND
    return cut_off or (one_ns + half) // MILLISECOND == (other_ns + half) // MILLISECOND
