"""Python's collector of reference cycles: it must not stop the daemon for longer than a few milliseconds.

A collection looks at all objects that it still knows, and files are objects: with 300,000 files that were made after
the mount, one collection takes 50 to 140 ms. So what survives two collections is frozen: no later one looks at it.
The memory of a frozen object is given back as always when the last reference goes. Only a cycle of frozen objects that
nobody refers to would stay. The tree has no cycles, and requests leave none: tests/faults/test_collector.py counts.
"""

import gc

import trio

_THRESHOLDS = (5_000, 4, 4)
"""New objects before a collection of the youngest, and collections before one of the next generation.

A collection looks at 25,000 objects at most, which takes about 3 ms. By default Python collects every 700 objects:
that costs 8 % of a create and finds little.
"""


_INTERVAL_SECONDS = 0.1
"""Longest time between two collections.

Python counts new objects less freed ones. Where changes replace objects, as every write replaces the attributes of its
file, or where old objects go, that number does not grow although the objects get ever more that the next collection
must look at. While a tree of 30,000 files was removed, half a second of them took 28 ms. A collection that has nothing
to look at takes some microseconds.
"""


async def keep_pauses_short() -> None:
    """Freeze what is alive now, and until cancelled what survives a collection of the second generation or later."""
    gc.set_threshold(*_THRESHOLDS)
    gc.freeze()
    gc.callbacks.append(_freeze_survivors)
    try:
        while True:
            await trio.sleep(_INTERVAL_SECONDS)
            gc.collect(1)
    finally:
        gc.callbacks.remove(_freeze_survivors)


def _freeze_survivors(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] > 0:
        gc.freeze()
