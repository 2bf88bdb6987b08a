"""How long others wait at most while something large is destroyed, cut, removed or listed."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeAlias

import redis

from bench.candidates import Vfsd
from bench.growth import stored
from bench.growth.base import RUNS, SCOPE, UNITS, Place, Row, Run
from bench.growth.large_files import large_files
from bench.process import BenchError
from bench.workloads.small import make_empty_files

_LIST_ALL = "import sys; from vfsd import connect; connect(sys.argv[1]).list_all_paths()"
_WAIT = "µs, longest wait"
_SWEPT_AFTER = 0.005
"""Seconds for each MiB in which a store has deleted what was cut off or removed. Others wait also for that.

They do not wait for the return of freed memory here, which comes some seconds later: see docs/performance.md."""
_SMALL_DIRECTORY = 100
"""Files of a directory in a listing that is not flat."""

_Call: TypeAlias = Callable[[], object]
"""What somebody else does again and again."""
_Other: TypeAlias = Callable[[Place], _Call]
"""Prepares the call of somebody else."""


# --- who waits


def _pinging(place: Place) -> _Call:
    client = redis.Redis.from_url(place.store)
    return client.ping


def _appending(place: Place) -> _Call:
    return _appending_to(place.vfsd)


def _appending_in_another_scope(place: Place) -> _Call:
    return _appending_to(place.another())


def _appending_to(vfsd: Vfsd) -> _Call:
    """Return what appends a line to a log, which stays open as long as this program runs."""
    log = os.open(vfsd.mountpoint / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    return lambda: os.write(log, b"line")


def _looking_up(place: Place) -> _Call:
    """Return what looks for further missing names: the kernel would remember one that exists."""
    mountpoint, numbers = place.vfsd.mountpoint, count()
    return lambda: os.path.exists(mountpoint / f"missing{next(numbers)}")


def _waited(call: _Call) -> int:
    started = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - started) // 1000


def _longest_beside(vfsd: Vfsd, command: list[str], call: _Call) -> int:
    """Call *call* again and again while *command* runs. Return how long (µs) the slowest call took."""
    longest = 0
    with subprocess.Popen(command, env=vfsd.environment, stdout=subprocess.DEVNULL) as running:
        while running.poll() is None:
            longest = max(longest, _waited(call))
    if running.returncode:
        raise BenchError(f"{' '.join(command[2:5])} failed")
    return longest


def _beside_each(place: Place, commands: Iterator[list[str]], other: _Other) -> Run:
    """Return a run of the next of *commands*. It returns how long *other* had to wait at most."""
    call = other(place)
    return lambda: _longest_beside(place.vfsd, next(commands), call)


# --- for what


def _beside_destroy(other: _Other, place: Place, size: int) -> Run:
    """Destroy scopes of *size* files in the same store."""
    scopes = [f"growth{number}" for number in range(RUNS)]
    for scope in scopes:
        stored.store(place.store, scope, stored.directories(size, size))
    command = [sys.executable, "-m", "vfsd", "destroy", "--yes", "--store", place.store]
    return _beside_each(place, iter([[*command, scope] for scope in scopes]), other)


def _beside_large(shell: str, other: _Other, place: Place, size: int) -> Run:
    """Do the command *shell* with files ($0) of *size* MiB, and leave the store time to delete what that removed."""
    command = ["sh", "-c", f'{shell} && sleep "$2"']
    arguments = [str(size << 19), str(size * _SWEPT_AFTER)]
    files: list[Path] = large_files(place.vfsd, size)
    return _beside_each(place, iter([[*command, str(file), *arguments] for file in files]), other)


def _beside_listing(most: int | None, place: Place, size: int) -> Run:
    """Name all of *size* files by the socket, in directories of *most* files, or in one directory."""
    stored.store(place.store, SCOPE, stored.directories(size, most or size))
    command = [sys.executable, "-c", _LIST_ALL, str(place.vfsd.mountpoint)]
    return _beside_each(place, iter([command] * RUNS), _looking_up)


def _beside_new_files(place: Place, size: int) -> Run:
    """Files that are made after the mount are what the collector of cycles would look at."""
    directory = place.vfsd.mountpoint / "new"
    directory.mkdir()
    make_empty_files(directory, size)
    append = _appending(place)
    return lambda: max(_waited(append) for _ in range(10 * UNITS))


def _row(name: str, small: int, prepare: Callable[[Place, int], Run], *, on_sqlite: bool = False) -> Row:
    return Row(name, _WAIT, small, prepare, on_sqlite, is_timed=False)


def _rows_of_large_files() -> Iterator[Row]:
    """Yield a row for each change of a large file, and for each who waits for it."""
    others = (
        ("ask Redis", False, _pinging),
        ("look up", False, _looking_up),
        ("append on SQLite in another scope", True, _appending_in_another_scope),
        ("look up on SQLite", True, _looking_up),
    )
    changes = (("cut in half", 'truncate -s "$1" "$0"'), ("removed", 'rm "$0"'))
    for what, on_sqlite, other in others:
        for change, shell in changes:
            name = f"{what} while a file of SIZE MiB is {change}"
            yield _row(name, 32, partial(_beside_large, shell, other), on_sqlite=on_sqlite)


OTHERS = (
    _row("ask Redis while a scope of SIZE files is destroyed", 5000, partial(_beside_destroy, _pinging)),
    _row(
        "append on SQLite while another scope of SIZE files is destroyed",
        5000,
        partial(_beside_destroy, _appending),
        on_sqlite=True,
    ),
    *_rows_of_large_files(),
    _row("look up while SIZE files are named by the socket", 5000, partial(_beside_listing, _SMALL_DIRECTORY)),
    _row("look up while SIZE files of one directory are named by the socket", 100_000, partial(_beside_listing, None)),
    _row("append beside SIZE files made after the mount", 5000, _beside_new_files),
)
