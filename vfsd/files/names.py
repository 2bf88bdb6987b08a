"""The names of one directory as they were at one moment, sorted, without ever stopping the event loop for long.

A directory may have a million names. They are taken from the live directory a few at a time; only if it is about to
change meanwhile, all that are left are taken at once, in some 60 ms for each million. Sorted names wait in large byte
strings, not in lists: Python's collector of reference cycles looks at each element of a list, and at no part of a byte
string.
"""

import gc
from collections.abc import Collection, Iterable, Iterator
from heapq import merge
from itertools import islice

_SORTED_AT_ONCE = 4_000
"""Most names that are sorted in one piece, which takes a few milliseconds."""

_SEPARATOR = b"/"
"""The one byte, besides NUL, that no name has."""


class DirectoryNames:
    """The names that are the keys of *entries* now, and those in *more*. No name comes twice.

    Call :meth:`finish_taking` before *entries* change.
    """

    def __init__(self, entries: Iterable[bytes], more: Collection[bytes]) -> None:
        self._left: Iterator[bytes] = iter(entries)
        self._more = more

    def finish_taking(self) -> None:
        """Take the rest of the names now: a list takes them in a tenth of the time of a byte string.

        It is frozen, so that the collector does not look at it. It goes when the last name is taken, as always.
        """
        self._left = iter(list(self._left))
        gc.freeze()

    def sorted(self) -> Iterator[bytes | None]:
        """Yield the names, sorted. None: nothing, but milliseconds have passed."""
        pieces = [_joined(sorted(self._more))] if self._more else []
        while piece := list(islice(self._left, _SORTED_AT_ONCE)):
            piece.sort()
            pieces.append(_joined(piece))
            if len(piece) == _SORTED_AT_ONCE:
                yield None
        yield from merge(*map(_parts, pieces))


def _joined(names: Iterable[bytes]) -> bytes:
    """Return *names* in one byte string."""
    return _SEPARATOR.join(names)


def _parts(joined: bytes) -> Iterator[bytes]:
    """Yield the names in *joined*, one at a time."""
    start = 0
    while (end := joined.find(_SEPARATOR, start)) >= 0:
        yield joined[start:end]
        start = end + 1
    if start < len(joined):
        yield joined[start:]
