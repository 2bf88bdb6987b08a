"""The one clock. Nothing else in the project may read the time of day for a file."""

import time

now = time.time_ns
"""Returns the time of day in nanoseconds since 1970-01-01 UTC (:manpage:`clock_gettime(2)`, CLOCK_REALTIME)."""
