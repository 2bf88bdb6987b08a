"""Returning freed memory to the system while a mount is served.

The C library returns only what is free at the end of its heap. One small object behind a removed file of 1 GiB keeps
all of it in this process. :manpage:`malloc_trim(3)` returns every free page, also those in the middle of the heap.

A return holds the allocator's lock, about 0.1 s for each GiB. It runs in a thread, without Python's lock, so a request
that comes meanwhile waits only if it needs memory that neither Python nor its thread has at hand. Memory is returned
when it has been free for a few seconds: pages that are written again at once would have to be mapped again.
"""

import ctypes
import logging
from collections.abc import Callable

import trio

from vfsd.scope.memory_limit import MemoryLimit
from vfsd.tree.tree import Tree

_log = logging.getLogger(__name__)

_SAMPLE_SECONDS = 1.0


async def keep_returning(memory: MemoryLimit, tree: Tree) -> None:
    """Sample *memory* beside *tree*, and return what has been free for a while. Runs until cancelled.

    If the limit has refused growth, what is free is returned at once. Without malloc_trim memory is only sampled.
    """
    trim = _malloc_trim()
    while True:
        await trio.sleep(_SAMPLE_SECONDS)
        memory.sample(tree)
        refused, memory.has_refused = memory.has_refused, False
        due = memory.resident.is_return_due() or (refused and memory.resident.excess > 0)
        if due and trim is not None:
            before = memory.resident.resident
            await trio.to_thread.run_sync(trim)
            memory.resident.returned(tree)
            _log.debug("returned free memory: resident %d bytes, before %d", memory.resident.resident, before)


def _malloc_trim() -> Callable[[], None] | None:
    """Return a function that returns free memory, or None if the C library is not glibc."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except AttributeError:
        return None
    trim.argtypes = [ctypes.c_size_t]
    return lambda: trim(0)
