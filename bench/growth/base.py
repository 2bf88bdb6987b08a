"""What each row of the growth table is made of: a place with a store and mounts, and a run in it."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias

from bench.candidates import Vfsd, mounted
from bench.factory import redis_server

RUNS = 3
UNITS = 200
"""Units of one run, if a unit is one operation among many files."""

SCOPE = "bench"
"""The scope that :attr:`Place.vfsd` mounts."""

Run: TypeAlias = Callable[[], int]
"""Does some units of work, other ones each time, and returns how many. See :attr:`Row.is_timed` for other runs."""


class Place:
    """Where a row runs: a store of its own with the URL *store*, files below *base*, and mounts that *stack* ends."""

    def __init__(self, base: Path, store: str, stack: ExitStack) -> None:
        self.store = store
        self._base = base
        self._stack = stack

    @cached_property
    def vfsd(self) -> Vfsd:
        """The mount of SCOPE, which is mounted when it is first asked for: what is stored before costs less time."""
        return self._mounted(SCOPE)

    def another(self, *options: str) -> Vfsd:
        """Mount a further scope of the store, with *options*."""
        return self._mounted("another", *options)

    def _mounted(self, scope: str, *options: str) -> Vfsd:
        base = self._base / scope
        base.mkdir()
        vfsd = Vfsd(base, self.store, "--scope", scope, *options)
        self._stack.enter_context(mounted(vfsd))
        vfsd.wait_until_started()
        return vfsd


class Row(NamedTuple):
    """Work at the size *small* and at a larger one, on Redis or SQLite. *prepare* is not timed.

    *figure* says what is shown. It is the time (µs) of a unit if the run *is_timed*, or else what the run returns.
    """

    name: str
    figure: str
    small: int
    prepare: Callable[[Place, int], Run]
    on_sqlite: bool = False
    is_timed: bool = True


@contextmanager
def empty_place(base: Path, *, on_sqlite: bool) -> Iterator[Place]:
    """Give a place with an empty store. Afterwards its mounts and its server are gone."""
    base.mkdir()
    with redis_server() as server, ExitStack() as stack:
        yield Place(base, f"sqlite:{base}/store.db" if on_sqlite else server.url, stack)


def seconds(run: Run) -> float:
    """Return the seconds for each unit of *run*."""
    started = time.perf_counter()
    units = run()
    return (time.perf_counter() - started) / units


def each(operation: Callable[[int], object], most: int) -> Run:
    """Return a run of *operation* with further numbers each time, as many in all runs as *most* allows."""
    numbers, units = count(), max(1, min(UNITS, most // RUNS))

    def run() -> int:
        for _ in range(units):
            operation(next(numbers))
        return units

    return run


def renaming(directory: Path) -> Run:
    """Return a run that renames *directory*, to and fro."""
    names = (directory, directory.with_name("renamed"))
    return each(lambda number: os.rename(names[number % 2], names[1 - number % 2]), RUNS * UNITS)
