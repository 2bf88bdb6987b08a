"""When freed memory is returned, and what a limit of memory counts: decided by figures that the tests give."""

import errno

import pytest

from vfsd.errors import FsError
from vfsd.scope.memory_limit import MemoryLimit
from vfsd.scope.resident_memory import ResidentMemory, estimated_size
from vfsd.tree.tree import Tree

MIB = 1 << 20
BASE = 40 * MIB
"""What a daemon takes beside its tree."""


class Figures(ResidentMemory):
    """Measures the resident memory *present*, which the test sets."""

    def __init__(self, present: int = BASE) -> None:
        super().__init__()
        self.present = present
        self.samples = 0

    def sample(self, tree: Tree) -> None:
        self.samples += 1
        self.record(self.present, estimated_size(tree))


def holding(mebibytes: int) -> Tree:
    """Return a tree that counts *mebibytes* of content and no file."""
    tree = Tree()
    tree.content_bytes = mebibytes * MIB
    return tree


def is_refused(limit: MemoryLimit, tree: Tree, more: int) -> bool:
    """Whether *limit* refuses *more* bytes."""
    try:
        limit.check(tree, more)
    except FsError as error:
        return error.errno == errno.ENOSPC
    return False


def limited_to(mebibytes: int, figures: Figures) -> MemoryLimit:
    """Return a limit that measures *figures*."""
    limit = MemoryLimit(mebibytes * MIB)
    limit.resident = figures
    return limit


def due_after(figures: Figures, *trees: Tree) -> list[bool]:
    """Return whether a return is due after each of the samples of *trees*."""
    due = []
    for tree in trees:
        figures.sample(tree)
        due.append(figures.is_return_due())
    return due


def test_removed_content_is_returned_once_it_has_been_free_for_a_while() -> None:
    figures, full, empty = Figures(), holding(200), holding(0)
    assert due_after(figures, empty) == [False]
    figures.present += 200 * MIB
    assert due_after(figures, *[full] * 5) == [False] * 5
    assert due_after(figures, *[empty] * 3) == [False, False, True]
    figures.present = BASE
    figures.returned(empty)
    assert (figures.excess, due_after(figures, *[empty] * 5)) == (0, [False] * 5)


def test_what_is_used_again_at_once_is_not_returned() -> None:
    figures, full, empty = Figures(BASE + 200 * MIB), holding(200), holding(0)
    assert not any(due_after(figures, *[full, empty, empty] * 5))


def test_very_much_memory_is_returned_without_waiting() -> None:
    figures, full, empty = Figures(BASE + 600 * MIB), holding(600), holding(0)
    assert due_after(figures, full, empty) == [False, True]


def test_memory_that_no_file_took_is_returned() -> None:
    figures, tree = Figures(), holding(100)
    figures.sample(tree)
    figures.present += 64 * MIB
    assert due_after(figures, *[tree] * 3) == [False, False, True]


def test_what_cannot_be_returned_is_tried_once() -> None:
    figures, tree = Figures(), holding(0)
    figures.sample(tree)
    figures.present += 64 * MIB
    assert due_after(figures, *[tree] * 3)[-1]
    figures.returned(tree)
    assert not any(due_after(figures, *[tree] * 5))


@pytest.mark.parametrize("estimated_mib", [50, 200])
def test_an_estimate_that_is_too_low_or_too_high_hides_nothing(estimated_mib: int) -> None:
    figures, empty = Figures(), holding(0)
    figures.sample(empty)
    figures.present += 100 * MIB
    due_after(figures, *[holding(estimated_mib)] * 3)
    figures.returned(holding(estimated_mib))
    assert due_after(figures, *[empty] * 3)[-1]


def test_a_limit_counts_everything_resident() -> None:
    figures = Figures()
    limit = limited_to(100, figures)
    limit.sample(holding(0))
    assert not is_refused(limit, holding(0), 60 * MIB)
    figures.present += 30 * MIB  # requests under way
    limit.sample(holding(0))
    assert is_refused(limit, holding(0), 31 * MIB)
    assert not is_refused(limit, holding(0), 30 * MIB)


def test_a_limit_that_was_reached_has_room_for_what_is_removed() -> None:
    """The pages stay with the process until they are returned. New content takes them first."""
    figures = Figures()
    limit = limited_to(100, figures)
    limit.sample(holding(0))
    figures.present = 100 * MIB
    assert is_refused(limit, holding(60), 1)
    assert limit.has_refused
    for _ in range(2):  # before and after the next sample
        assert not is_refused(limit, holding(10), 50 * MIB)
        assert is_refused(limit, holding(10), 51 * MIB)
        limit.sample(holding(10))


def test_removed_content_whose_pages_are_gone_makes_no_room_twice() -> None:
    figures = Figures()
    limit = limited_to(100, figures)
    limit.sample(holding(0))
    figures.present = 100 * MIB
    limit.sample(holding(60))
    figures.present = BASE  # the C library has returned the end of its heap by itself
    limit.sample(holding(0))
    assert is_refused(limit, holding(0), 61 * MIB)


def test_a_burst_is_measured_while_it_is_under_way() -> None:
    """Each byte of it takes two: the timer of the daemon does not run meanwhile, and the limit holds all the same."""
    figures = Figures()
    limit = limited_to(100, figures)
    limit.sample(holding(0))
    written = 0
    while not is_refused(limit, holding(written), MIB):
        written += 1
        figures.present += 2 * MIB
    assert figures.present <= 110 * MIB
    assert figures.samples < written


def test_without_a_limit_nothing_is_measured_on_the_way_of_a_write() -> None:
    figures = Figures()
    limit = limited_to(0, figures)
    assert not is_refused(limit, holding(1000), 1000 * MIB)
    assert figures.samples == 0
