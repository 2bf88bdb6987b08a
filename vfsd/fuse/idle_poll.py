"""Expecting the kernel's next request: whoever has just had an answer often asks again before we could fall asleep.

Falling asleep and being woken costs as much as a small request. So before trio sleeps, the session's descriptor is
asked again for a moment. It never does so while a commit is under way, whose answer it would hold up.
"""

import os
from collections.abc import Callable
from pathlib import Path

import trio

from vfsd.busy_poll import BusyPoll

_MOMENT_NS = 100_000
"""Longest wait (ns); about twice what a small request takes."""


class IdlePoll(trio.abc.Instrument):
    """Added to trio's loop while a session is served. *busy* says that something else is waited for.

    ``request`` is how the next request is waited for.
    """

    def __init__(self, busy: Callable[[], bool]) -> None:
        self._busy = busy
        self.request = BusyPoll(_session_descriptor(), _MOMENT_NS)

    def before_io_wait(self, timeout: float) -> None:
        """Wait for a request before the loop sleeps, unless it will not sleep."""
        if timeout > 0 and not self._busy():
            self.request.wait()


def _session_descriptor() -> int:
    """Return the descriptor of this process's only FUSE session; pyfuse3 does not tell it."""
    descriptors = (int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    return next(number for number in descriptors if _target(number) == "/dev/fuse")


def _target(number: int) -> str:
    try:
        return os.fspath(Path(f"/proc/self/fd/{number}").readlink())
    except OSError:  # the one that listed the directory
        return ""
