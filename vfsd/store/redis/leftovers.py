"""Chunks that a large truncation drops: noted in the scope first, deleted in slices afterwards.

Redis runs one command at a time, so deleting the 131,072 chunks of 2 GiB at once would hold up all its users. So the
commit of the truncation stores the new record, and *notes* which chunks are *leftovers*. From then on they read as
zeros, also for who loads the scope. Each later commit deletes one slice of them together with its note. A commit that
writes one of these chunks deletes the slice of that chunk first, in the same transaction. A crash loses nothing: the
next owner finds the notes.

No leftovers are deleted before the first commit of a claim: the scope must not change while it is loaded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeGuard

import trio

from vfsd.tree.change import Change, DropChunks, Op, PutChunks

SLICE = 400
"""The most chunks that one transaction deletes from one file: Redis needs about a millisecond."""

_MOST_IN_NOTE = 4096
"""The most chunks in a note that is read, whatever slices its writer used."""

SWEEP = Change((), grows=False)
"""Stands for "delete the next slice", whichever that is when the transaction is encoded."""


class Leftover(NamedTuple):
    """At most :data:`SLICE` chunks of file *ino* that are stored and must read as zeros. *numbers* ascend."""

    ino: int
    numbers: tuple[int, ...]

    @property
    def field(self) -> bytes:
        """The field of its note."""
        return b"%d/%d" % (self.ino, self.numbers[0])

    @property
    def value(self) -> bytes:
        """The value of its note: the numbers, as runs like ``7-9`` with a space between them."""
        return b" ".join(b"%d-%d" % run for run in _runs(self.numbers))


class NoteLeftovers(NamedTuple):
    """Write the notes of *leftovers*."""

    leftovers: tuple[Leftover, ...]


class DropLeftover(NamedTuple):
    """Delete the chunks of *leftover*, and its note."""

    leftover: Leftover


RedisOp: TypeAlias = Op | NoteLeftovers | DropLeftover
"""What a transaction stores."""


class Leftovers:
    """The leftovers of a claimed scope.

    ``pending`` are the notes in the scope, by their field. ``large`` is how many changes are being committed that will
    leave some. ``due`` is set when there is something to delete.
    """

    def __init__(self) -> None:
        self.pending: dict[bytes, Leftover] = {}
        self.large = 0
        self.due = trio.Event()

    def resolve(self, changes: Iterable[Change]) -> list[Change]:
        """Return what one transaction must store for *changes*: large truncations and leftovers taken into account."""
        left = dict(self.pending)
        return [_changed(change, _resolved(change, left)) for change in changes]

    def applied(self, changes: Iterable[Change]) -> None:
        """Record that the *changes* of a transaction, from :meth:`resolve`, are stored."""
        ops: Iterable[RedisOp] = (op for change in changes for op in change.ops)
        for op in ops:
            if isinstance(op, NoteLeftovers):
                self.pending.update((leftover.field, leftover) for leftover in op.leftovers)
            elif isinstance(op, DropLeftover):
                self.pending.pop(op.leftover.field, None)
        if self.pending:
            self.due.set()


def _changed(change: Change, ops: Sequence[RedisOp]) -> Change:
    return change._replace(ops=tuple(ops))  # type: ignore[arg-type]  # only transaction.commands looks at them


def _resolved(change: Change, left: dict[bytes, Leftover]) -> list[RedisOp]:
    """Return the operations for *change*. Remove what they delete from *left*, the leftovers that are still there."""
    if change is SWEEP:
        return [DropLeftover(left.popitem()[1])] if left else []
    ops: list[RedisOp] = []
    for op in change.ops:
        if isinstance(op, PutChunks):
            touched = [each.field for each in left.values() if _touches(op, each)]
            ops += [DropLeftover(left.pop(field)) for field in touched]
        if is_large(op):
            noted = {number for each in left.values() if each.ino == op.ino for number in each.numbers}
            slices = tuple(_slices(op.ino, sorted(set(op.numbers or ()) - noted)))
            left.update((each.field, each) for each in slices)
            ops.append(NoteLeftovers(slices))
        else:
            ops.append(op)
    return ops


def _touches(op: PutChunks, leftover: Leftover) -> bool:
    """Whether *op* writes a chunk between the first and the last of *leftover*."""
    first, last = leftover.numbers[0], leftover.numbers[-1]
    return op.ino == leftover.ino and any(first <= number <= last for number in op.chunks)


def is_large(op: Op) -> TypeGuard[DropChunks]:
    """Whether *op* drops more chunks than one transaction should."""
    return isinstance(op, DropChunks) and op.numbers is not None and len(op.numbers) > SLICE


def _slices(ino: int, numbers: Sequence[int]) -> Iterator[Leftover]:
    for start in range(0, len(numbers), SLICE):
        yield Leftover(ino, tuple(numbers[start : start + SLICE]))


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last number of each run of consecutive *numbers*."""
    first = last = None
    for number in numbers:
        if first is None or last is None or number != last + 1:
            if first is not None and last is not None:
                yield first, last
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last


def read_notes(notes: Mapping[bytes, bytes]) -> tuple[dict[bytes, Leftover], dict[bytes, str]]:
    """Return the leftovers that *notes*, fields and values, describe, and what is wrong with the others. By field."""
    leftovers, faults = {}, {}
    for field, value in notes.items():
        try:
            leftovers[field] = _read_note(field, value)
        except ValueError as error:
            faults[field] = str(error)
    return leftovers, faults


def _read_note(field: bytes, value: bytes) -> Leftover:
    numbers: list[int] = []
    for run in value.split(b" "):
        first, last = map(int, run.split(b"-"))
        if not 0 <= first <= last < first + _MOST_IN_NOTE - len(numbers):
            raise ValueError(f"{field!r} has the run {run!r}")
        numbers += range(first, last + 1)
    leftover = Leftover(int(field.partition(b"/")[0]), tuple(numbers))
    if leftover.field != field:
        raise ValueError(f"{field!r} begins with chunk {numbers[0]}")
    return leftover
