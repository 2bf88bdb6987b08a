"""The method: rounds in which all candidates take turns, so that whatever else the machine does meets all of them.

For each workload every candidate is mounted afresh. In each round each of them in turn gets an empty directory,
prepares, is left alone until it has come to rest, and is timed once; what it made is then removed, untimed. A candidate
that fails is out of this workload, and its cell says why.
"""

import gc
import shutil
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from bench import process
from bench.candidates import Candidate
from bench.lab import Lab
from bench.process import BenchError
from bench.wire import Wire
from bench.workloads.base import Go, Stage, Workload

_T = TypeVar("_T")


class Sample(NamedTuple):
    """One run: *seconds* for *done* units; or why there is none."""

    workload: str
    candidate: str
    seconds: float
    done: int
    error: str = ""


@dataclass(frozen=True)
class Plan:
    """What to measure: *workloads* with their sizes, on *candidates*, in so many *rounds*."""

    workloads: Sequence[tuple[Workload, int]]
    candidates: Sequence[str]
    rounds: int


class Contestant(Protocol):
    """A candidate in the way a round needs it."""

    @property
    def pids(self) -> list[int]:
        """All processes that work for it."""
        ...

    def prepare(self, workload: Workload, size: int) -> Go:
        """Do all that is not timed, and return what is."""
        ...

    def tidy(self) -> None:
        """Remove what the run has made."""
        ...


class OnMount:
    """A candidate with a mount; *scratch* is off it."""

    def __init__(self, candidate: Candidate, scratch: Path) -> None:
        self._candidate = candidate
        self._scratch = scratch
        self._directory = candidate.mountpoint / "round"

    @property
    def pids(self) -> list[int]:
        """See :attr:`Contestant.pids`."""
        return self._candidate.pids

    def prepare(self, workload: Workload, size: int) -> Go:
        """See :meth:`Contestant.prepare`."""
        self._directory.mkdir()
        return workload.prepare(Stage(self._candidate, self._directory, size, self._scratch))

    def tidy(self) -> None:
        """See :meth:`Contestant.tidy`."""
        shutil.rmtree(self._directory)


class OnWire:
    """The commands alone, over *wire* to the server *pid*."""

    def __init__(self, wire: Wire, pid: int) -> None:
        self._wire = wire
        self.pids = [pid]

    def prepare(self, workload: Workload, size: int) -> Go:
        """See :meth:`Contestant.prepare`."""
        assert workload.bare is not None, "asked only for what can be done so"
        return workload.bare(self._wire, size)

    def tidy(self) -> None:
        """See :meth:`Contestant.tidy`. The next run empties the server if it needs to."""


@contextmanager
def contestant(lab: Lab, name: str) -> Iterator[Contestant]:
    """Give the candidate *name*, set up. Raises BenchError."""
    with ExitStack() as stack:
        if name == "hset":
            yield OnWire(*stack.enter_context(lab.wire()))
        else:
            yield OnMount(stack.enter_context(lab.candidate(name)), lab.scratch)


def run(lab: Lab, plan: Plan) -> Generator[Sample, None, None]:
    """Measure *plan*; yield each sample as it is taken."""
    for workload, size in plan.workloads:
        with ExitStack() as stack:
            yield from _run_workload(lab, plan, workload, size, stack)


def _run_workload(lab: Lab, plan: Plan, workload: Workload, size: int, stack: ExitStack) -> Iterator[Sample]:
    running: dict[str, Contestant] = {}
    for name in filter(workload.suits, plan.candidates):
        try:
            running[name] = stack.enter_context(contestant(lab, name))
        except (BenchError, OSError) as error:
            yield Sample(workload.name, name, 0.0, 0, str(error))
    for number in range(plan.rounds):
        for name, runner in _rotated(list(running.items()), number):
            try:
                yield Sample(workload.name, name, _timed(runner, workload, size), workload.done(size))
            except (BenchError, OSError) as error:
                del running[name]
                yield Sample(workload.name, name, 0.0, 0, str(error))


def _rotated(order: list[_T], by: int) -> list[_T]:
    """Return *order* begun elsewhere: so nobody goes first in every round."""
    start = by % max(1, len(order))
    return order[start:] + order[:start]


def _timed(runner: Contestant, workload: Workload, size: int) -> float:
    """Return how many seconds one run of *workload* takes."""
    go = runner.prepare(workload, size)
    process.settle(runner.pids)
    gc.collect()
    gc.disable()
    try:
        started = time.perf_counter()
        go()
        seconds = time.perf_counter() - started
    finally:
        gc.enable()
    runner.tidy()
    return seconds
