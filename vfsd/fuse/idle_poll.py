"""Polling for the kernel's next request before the event loop sleeps.

A program that has just got an answer often sends its next request at once. Sleeping and waking up costs as much as a
small request. So the session's file descriptor is polled for a moment before trio sleeps. It is never polled while a
commit is under way, because that would delay the store's answer.
"""

import os
from collections.abc import Callable
from pathlib import Path

import trio

from vfsd.busy_poll import BusyPoll

_POLL_NS = 100_000
"""Longest time (ns) to poll: about twice the duration of a small request."""


class IdlePoll(trio.abc.Instrument):
    """Polls in trio's event loop while a session is served.

    *busy* returns whether something other than a request is awaited. ``request`` is the poll, with its counts.
    """

    def __init__(self, busy: Callable[[], bool]) -> None:
        self._busy = busy
        self.request = BusyPoll(_session_descriptor(), _POLL_NS)

    def before_io_wait(self, timeout: float) -> None:
        """Poll for a request, unless the loop will not sleep."""
        if timeout > 0 and not self._busy():
            self.request.wait()


def _session_descriptor() -> int:
    """Return the file descriptor of the only FUSE session of this process. pyfuse3 has no function for it."""
    descriptors = (int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    return next(number for number in descriptors if _target(number) == "/dev/fuse")


def _target(number: int) -> str:
    try:
        return os.fspath(Path(f"/proc/self/fd/{number}").readlink())
    except OSError:  # the descriptor that listed the directory is closed by then
        return ""
