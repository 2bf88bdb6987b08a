"""Whether a mount is still in the mount table, and a line in the log when it is not, and is used all the same."""

import contextlib
import logging
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from vfsd.host.mount_table import Mount, mount_at, mounts

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0
_END_SECONDS = 2.0
"""How long a mount that was removed may take to end. Nothing is said of one that nobody uses."""


def is_at(mountpoint: str, mount: Mount | None) -> bool:
    """Return whether *mount* is still at *mountpoint*: after a lazy unmount another daemon may have mounted there."""
    try:
        return mount_at(mountpoint) == mount
    except OSError:  # no file descriptor left
        return True


async def tell_if_removed(mount: Mount) -> None:
    """Log it once if *mount* is removed, not just moved, and goes on because something still uses it."""
    with contextlib.suppress(OSError):  # no file descriptor left
        with _changes() as changes:
            while any(each.device == mount.device for each in mounts()):
                await _next(changes)
        await trio.sleep(_END_SECONDS)
        _log.info("%s is unmounted, but still in use, and served until that ends: see vfsd status", mount.mountpoint)


@contextmanager
def _changes() -> Iterator[select.poll]:
    """Yield what tells once of each change of the mount table: to read it all the time would take long if it is."""
    with Path("/proc/self/mountinfo").open("rb") as table:
        changes = select.poll()
        changes.register(table, select.POLLPRI)
        yield changes


async def _next(changes: select.poll) -> None:
    while True:
        await trio.sleep(_LOOK_SECONDS)
        if changes.poll(0):
            return
