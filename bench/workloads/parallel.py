"""Several processes that start at the same moment. They are forked before the time is measured, and wait."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence

from bench.process import BenchError
from bench.workloads.base import TimedCall


def in_parallel(tasks: Sequence[Callable[[], object]]) -> TimedCall:
    """Fork a process for each of *tasks*. Return a call that starts the tasks and returns when all have ended.

    If it is never called, the processes end with this one, and the tasks do not run. The call raises BenchError if a
    task fails.
    """
    gate, opener = os.pipe()
    pids = [_fork(task, gate, opener) for task in tasks]
    os.close(gate)

    def timed() -> None:
        os.write(opener, b"g" * len(pids))
        statuses = [os.waitpid(pid, 0)[1] for pid in pids]
        os.close(opener)
        if any(statuses):
            raise BenchError(f"{sum(map(bool, statuses))} of {len(pids)} processes failed")

    return timed


def _fork(task: Callable[[], object], gate: int, opener: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.close(opener)
        if os.read(gate, 1):
            task()
        status = 0
    except OSError:
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(status)
