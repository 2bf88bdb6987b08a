"""Waiting briefly without sleeping: for an answer that is about to come, being woken costs more than the wait.

Measured: a request to a Redis server on the same host takes 20 µs, and 50 µs if the process sleeps meanwhile; a small
request of the kernel is often followed by the next within that time. So a descriptor is asked again and again for
a moment, for as long as that pays: each time in vain doubles how often it is left out. It never waits longer than it
was told, and where there is one processor it does not wait at all, for nobody could answer meanwhile.
"""

import os
import select
import time

_MOST_LEFT_OUT = 256


class BusyPoll:
    """Waits up to *limit_ns* for *descriptor* to become readable, keeping the processor.

    ``waits`` counts how often it has done more than look.
    """

    def __init__(self, descriptor: int, limit_ns: int) -> None:
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._limit_ns = limit_ns if len(os.sched_getaffinity(0)) > 1 else 0
        self.waits = 0
        self._left_out = 0
        self._to_leave_out = 0

    def wait(self) -> bool:
        """Return whether there is something to read, after waiting for it as long as that is likely to pay."""
        if self._to_leave_out or not self._limit_ns:
            self._to_leave_out = max(0, self._to_leave_out - 1)
            return bool(self._poll.poll(0))
        found = self._spin()
        self._left_out = 0 if found else min(2 * self._left_out + 1, _MOST_LEFT_OUT)
        self._to_leave_out = self._left_out
        return found

    def _spin(self) -> bool:
        self.waits += 1
        poll, clock = self._poll.poll, time.monotonic_ns
        end_ns = clock() + self._limit_ns
        while not poll(0):
            if clock() > end_ns:
                return False
        return True
