"""Several processes that begin at one moment. They are forked, and wait, before the clock runs."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence

from bench.process import BenchError
from bench.workloads.base import TimedCall


def in_parallel(tasks: Sequence[Callable[[], object]]) -> TimedCall:
    """Fork a process for each of *tasks*; they start when what is returned is called, which ends with the last.

    If it is never called they end with this process, having done nothing. Raises BenchError if one fails.
    """
    gate, opener = os.pipe()
    pids = [_forked(task, gate, opener) for task in tasks]
    os.close(gate)

    def timed() -> None:
        os.write(opener, b"g" * len(pids))
        statuses = [os.waitpid(pid, 0)[1] for pid in pids]
        os.close(opener)
        if any(statuses):
            raise BenchError(f"{sum(map(bool, statuses))} of {len(pids)} processes failed")

    return timed


def _forked(task: Callable[[], object], gate: int, opener: int) -> int:
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
