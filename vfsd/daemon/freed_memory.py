"""Freeing removed content, and returning freed memory to the system, while a mount is served.

Freeing the content of a file of 1 GiB takes 20 ms, and a return of that memory 60 ms. The mount must not wait for that.
So much content is freed in slices, between other requests.

The C library returns only what is free at the end of its heap. One small object behind a removed file keeps all of it
in this process. :manpage:`malloc_trim(3)` returns every free page, also those in the middle of the heap. It holds the
allocator's lock meanwhile. It runs in a thread, without Python's lock, so a request that comes meanwhile waits only if
it needs memory that neither Python nor its thread has at hand. Memory is returned when it has been free for a few
seconds: pages that are written again at once would have to be mapped again. Only what is too much for one return is
returned slice by slice while it is freed.
"""

import ctypes
import logging
from collections.abc import Callable

import trio

from vfsd.scope.memory_limit import MemoryLimit
from vfsd.tree.change import CHUNK_SIZE
from vfsd.tree.tree import Tree

_log = logging.getLogger(__name__)

_SAMPLE_SECONDS = 1.0

_CHUNKS_AT_ONCE = (16 << 20) // CHUNK_SIZE
"""Chunks that are freed in one step of the event loop: less than a millisecond."""
_STEPS_PER_RETURN = 4
"""Steps after which freed memory is returned, if it is much. Such a return takes 4 to 7 ms."""
_MUCH = (256 << 20) // CHUNK_SIZE
"""Chunks whose memory is returned while they are freed."""


class FreedMemory:
    """Takes the content that is removed from *tree*, and returns free memory. *memory* is the limit of the daemon."""

    def __init__(self, memory: MemoryLimit, tree: Tree) -> None:
        self._memory = memory
        self._tree = tree
        self._trim = _malloc_trim()
        self._removed: list[dict[int, bytes]] = []
        self._is_due = trio.Event()

    async def keep_freeing(self) -> None:
        """Free what is removed. Runs until cancelled."""
        self._tree.discard = self._discard
        while True:
            await self._is_due.wait()
            self._is_due = trio.Event()
            while self._removed:
                await self._free(self._removed.pop())

    def _discard(self, removed: dict[int, bytes]) -> None:
        self._removed.append(removed)
        self._is_due.set()

    async def _free(self, removed: dict[int, bytes]) -> None:
        is_much, steps = len(removed) > _MUCH, 0
        while removed:
            for _ in range(min(len(removed), _CHUNKS_AT_ONCE)):
                removed.popitem()
            steps += 1
            await trio.lowlevel.checkpoint()
            if is_much and (steps % _STEPS_PER_RETURN == 0 or not removed):
                await self._return()

    async def keep_returning(self) -> None:
        """Sample memory, and return what has been free for a while. Runs until cancelled.

        If the limit has refused growth, what is free is returned at once. Without malloc_trim memory is only sampled.
        """
        memory = self._memory
        while True:
            await trio.sleep(_SAMPLE_SECONDS)
            memory.sample(self._tree)
            refused, memory.has_refused = memory.has_refused, False
            if memory.resident.is_return_due() or (refused and memory.resident.excess > 0):
                await self._return()

    async def _return(self) -> None:
        """Return all memory that is free."""
        if self._trim is None:
            return
        before = self._memory.resident.resident
        await trio.to_thread.run_sync(self._trim)
        self._memory.resident.returned(self._tree)
        _log.debug("returned free memory: resident %d bytes, before %d", self._memory.resident.resident, before)


def _malloc_trim() -> Callable[[], None] | None:
    """Return a function that returns free memory, or None if the C library is not glibc."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except AttributeError:
        return None
    trim.argtypes = [ctypes.c_size_t]
    return lambda: trim(0)
