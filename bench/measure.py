"""The method: rounds in which every candidate runs once, so that other load on the machine slows all of them.

For each workload every candidate is mounted again, on an empty store (see :func:`mount_orders`). In each round the
candidates run one after the other. A candidate gets an empty directory, prepares, and is timed once when its processes
are idle. Then the directory is removed, which is not timed. A candidate that fails does not run this workload again,
and the report gives the error.
"""

import gc
import shutil
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from bench import process
from bench.bare_redis import RedisConnection
from bench.candidates import Candidate
from bench.factory import CandidateFactory, without_other
from bench.process import BenchError
from bench.workloads.base import Target, TimedCall, Workload

_T = TypeVar("_T")


class Sample(NamedTuple):
    """One run: *seconds* for *done* units, or the *error* of a run that failed."""

    workload: str
    candidate: str
    seconds: float
    done: int
    error: str = ""


@dataclass(frozen=True)
class Plan:
    """What to measure: *workloads* with their sizes, on *candidates*, in that number of *rounds*.

    If two checkouts are compared, both candidates of a pair stand next to each other in *candidates*.
    """

    workloads: Sequence[tuple[Workload, int]]
    candidates: Sequence[str]
    rounds: int


class Runner(Protocol):
    """What a round needs to run a candidate."""

    @property
    def pids(self) -> list[int]:
        """All processes that work for the candidate."""
        ...

    def prepare(self, workload: Workload, size: int) -> TimedCall:
        """Do everything that is not timed, and return the call that is timed."""
        ...

    def clean_up(self) -> None:
        """Remove what the run created."""
        ...


class MountRunner:
    """Runs workloads on a mounted candidate. *scratch* is a directory outside the mount."""

    def __init__(self, candidate: Candidate, scratch: Path) -> None:
        self._candidate = candidate
        self._scratch = scratch
        self._directory = candidate.mountpoint / "round"

    @property
    def pids(self) -> list[int]:
        """See :attr:`Runner.pids`."""
        return self._candidate.pids

    def prepare(self, workload: Workload, size: int) -> TimedCall:
        """See :meth:`Runner.prepare`."""
        self._directory.mkdir()
        return workload.prepare(Target(self._candidate, self._directory, size, self._scratch))

    def clean_up(self) -> None:
        """See :meth:`Runner.clean_up`."""
        shutil.rmtree(self._directory)


class RedisRunner:
    """Sends only the commands to Redis, over *connection* to the server with process ID *pid*."""

    def __init__(self, connection: RedisConnection, pid: int) -> None:
        self._wire = connection
        self.pids = [pid]

    def prepare(self, workload: Workload, size: int) -> TimedCall:
        """See :meth:`Runner.prepare`."""
        assert workload.bare is not None, "Workload.suits() was true"
        return workload.bare(self._wire, size)

    def clean_up(self) -> None:
        """See :meth:`Runner.clean_up`. Does nothing: the next run empties the server if it needs to."""


@contextmanager
def runner(factory: CandidateFactory, name: str) -> Iterator[Runner]:
    """Give the runner of the candidate *name*. Raises BenchError."""
    with ExitStack() as stack:
        if name == "hset":
            yield RedisRunner(*stack.enter_context(factory.connection()))
        else:
            yield MountRunner(stack.enter_context(factory.candidate(name)), factory.scratch)


def run(factory: CandidateFactory, plan: Plan) -> Generator[Sample, None, None]:
    """Measure *plan*, and yield each sample at once."""
    for workload, size in plan.workloads:
        for part in mount_orders(plan):
            with ExitStack() as stack:
                yield from _run_workload(factory, part, workload, size, stack)


def mount_orders(plan: Plan) -> list[Plan]:
    """Return the parts of *plan* that are run one after the other, each with its own mounts.

    If two checkouts are compared, the second half of the rounds mounts them in the opposite order. The order matters:
    the same code against itself read a cached file at 0.77 of its speed when it was mounted first.
    """
    half = plan.rounds // 2
    if not half or all(without_other(name) == name for name in plan.candidates):
        return [plan]
    swapped = tuple(reversed(plan.candidates))
    return [replace(plan, rounds=plan.rounds - half), replace(plan, candidates=swapped, rounds=half)]


def _run_workload(
    factory: CandidateFactory, plan: Plan, workload: Workload, size: int, stack: ExitStack
) -> Iterator[Sample]:
    running: dict[str, Runner] = {}
    for name in plan.candidates:
        if not workload.suits(without_other(name)):
            continue
        try:
            running[name] = stack.enter_context(runner(factory, name))
        except (BenchError, OSError) as error:
            yield Sample(workload.name, name, 0.0, 0, str(error))
    for number in range(plan.rounds):
        for name in order_of_round(list(running), number):
            try:
                yield Sample(workload.name, name, _timed(running[name], workload, size), workload.done(size))
            except (BenchError, OSError) as error:
                del running[name]
                yield Sample(workload.name, name, 0.0, 0, str(error))


def order_of_round(names: Sequence[str], number: int) -> list[str]:
    """Return *names* in the order of round *number*.

    Each round starts with another candidate, because the first one may find the machine in another state. The two
    candidates of a pair run one directly after the other, and each is the first of the two in every second round.
    """
    groups = [list(group) for _, group in groupby(names, key=without_other)]
    return [name for group in _rotated(groups, number) for name in _rotated(group, number)]


def _rotated(order: list[_T], by: int) -> list[_T]:
    """Return *order*, beginning with the element at index *by* and wrapping around at the end."""
    start = by % max(1, len(order))
    return order[start:] + order[:start]


def _timed(runner: Runner, workload: Workload, size: int) -> float:
    """Return the seconds that one run of *workload* takes."""
    timed = runner.prepare(workload, size)
    process.wait_until_idle(runner.pids)
    gc.collect()
    gc.disable()
    try:
        started = time.perf_counter()
        timed()
        seconds = time.perf_counter() - started
    finally:
        gc.enable()
    runner.clean_up()
    return seconds
