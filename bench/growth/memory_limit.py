"""``--max-memory`` after the mount was filled and emptied: how much fits again."""

import errno
import os
from itertools import count, cycle
from pathlib import Path

from bench import process
from bench.candidates import Vfsd
from bench.growth.base import Place, Row, Run

_MIB = 1 << 20
_BLOCK = os.urandom(_MIB)
_BESIDES = 48 * _MIB
"""Memory besides the content: 32 MiB of the last commits on Redis, 16 MiB that stay free (docs/performance.md)."""
_FILE_SIZES = (_MIB // 4, _MIB)
"""Bytes of a file in each round after the first, in turn: memory of other pieces must be used again too."""


def _fits(file: Path, size: int) -> bool:
    """Whether the mount takes *file* of *size* bytes. If not, a part of it may be left."""
    try:
        file.write_bytes(_BLOCK[:size])
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True


def _filled(directory: Path, size: int) -> int:
    """Write files of *size* bytes until there is no room, and remove them. Return how many bytes fitted."""
    fitted = next(number for number in count() if not _fits(directory / str(number), size)) * size
    for file in list(directory.iterdir()):
        file.unlink()
    return fitted


def _limited(place: Place, room: int) -> Vfsd:
    """Return a mount that may have *room* bytes more than an empty one."""
    (pid,) = process.processes_of(place.vfsd.mountpoint)
    return place.another("--max-memory", str(process.resident_bytes(pid) + _BESIDES + room))


def _filling_again(place: Place, size: int) -> Run:
    """Fill a mount with room for *size* MiB. Each run fills it again, and returns the share (%) that fits then."""
    directory = _limited(place, size * _MIB).mountpoint
    first, sizes = _filled(directory, _MIB), cycle(_FILE_SIZES)
    return lambda: round(100 * _filled(directory, next(sizes)) / first)


MEMORY_LIMIT = (
    Row(
        "fill a mount again that --max-memory gives room for SIZE MiB",
        "% of what fitted first, the worst of some rounds",
        32,
        _filling_again,
        is_timed=False,
    ),
)
