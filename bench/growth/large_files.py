"""Large files that are cut or removed: how long the call takes."""

import os
from collections.abc import Callable
from pathlib import Path

from bench.candidates import Vfsd
from bench.growth.base import RUNS, Place, Row, Run

_PIECE = bytes(range(1, 256)) * 4112 + bytes(range(1, 17))
"""A MiB without a chunk of zeros."""


def large_files(vfsd: Vfsd, size: int) -> list[Path]:
    """Return as many files of *size* MiB as there are runs."""
    files = [vfsd.mountpoint / f"large{number}" for number in range(RUNS)]
    for file in files:
        with file.open("wb") as opened:
            for _ in range(size):
                opened.write(_PIECE)
    return files


def _once_each(files: list[Path], operation: Callable[[Path], object]) -> Run:
    left = iter(files)

    def run() -> int:
        operation(next(left))
        return 1

    return run


def _halving(place: Place, size: int) -> Run:
    return _once_each(large_files(place.vfsd, size), lambda file: os.truncate(file, size << 19))


def _removing(place: Place, size: int) -> Run:
    return _once_each(large_files(place.vfsd, size), os.unlink)


LARGE_FILES = (
    Row("cut a file of SIZE MiB in half", "µs for each call", 16, _halving),
    Row("remove a file of SIZE MiB", "µs for each call", 16, _removing),
    Row("cut a file of SIZE MiB in half, on SQLite", "µs for each call", 16, _halving, on_sqlite=True),
    Row("remove a file of SIZE MiB, on SQLite", "µs for each call", 16, _removing, on_sqlite=True),
)
