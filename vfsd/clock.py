"""The one clock. Nothing else in the project may read the time of day for a file."""

import time

_COARSE = 5
"""CLOCK_REALTIME_COARSE of linux/time.h, for which Python has no name."""

_TICK_NS = round(time.clock_getres(_COARSE) * 1e9)
_TICKS = 10
_INEXACT_NS = 1_000

now = time.time_ns
"""Returns the time of day in nanoseconds since 1970-01-01 UTC (:manpage:`clock_gettime(2)`, CLOCK_REALTIME)."""


def is_kernel_now(time_ns: int) -> bool:
    """Whether *time_ns* is how the kernel says "now" in a request that it has sent a moment ago.

    It sends the clock that it keeps for times of files, CLOCK_REALTIME_COARSE, which moves once a tick
    (:manpage:`clock_gettime(2)`). So a time counts that this clock shows now, or has shown at one of its last ten
    moves. A tick is not exact to the nanosecond.
    """
    ago_ns = time.clock_gettime_ns(_COARSE) - time_ns + _INEXACT_NS
    return 0 <= ago_ns < (_TICKS + 1) * _TICK_NS and ago_ns % _TICK_NS <= 2 * _INEXACT_NS
