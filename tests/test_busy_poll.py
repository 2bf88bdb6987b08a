"""Waiting without sleeping: it returns when there is something to read, ends in time, and is skipped if in vain."""

import os
from collections.abc import Iterator

import pytest

from vfsd.busy_poll import BusyPoll

LIMIT_NS = 1_000


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


@pytest.fixture
def processors(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Return the processors that this process may use. A test may change the set."""
    allowed = {0, 1}
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: allowed)
    return allowed


def waits(poll: BusyPoll, calls: int) -> list[bool]:
    """Call ``wait`` *calls* times; return for each call whether it waited."""
    waited = []
    for _ in range(calls):
        before = poll.waits
        poll.wait()
        waited.append(poll.waits > before)
    return waited


def test_it_returns_true_if_there_is_something_to_read(pipe: tuple[int, int], processors: set[int]) -> None:
    os.write(pipe[1], b"x")
    assert BusyPoll(pipe[0], LIMIT_NS).wait()


def test_it_returns_false_if_nothing_comes_in_time(pipe: tuple[int, int], processors: set[int]) -> None:
    assert not BusyPoll(pipe[0], LIMIT_NS).wait()


def test_each_wait_in_vain_doubles_the_waits_that_are_skipped(pipe: tuple[int, int], processors: set[int]) -> None:
    assert waits(BusyPoll(pipe[0], LIMIT_NS), 12) == [True, False, True, False, False, False, True, *5 * [False]]


def test_after_a_success_no_wait_is_skipped(pipe: tuple[int, int], processors: set[int]) -> None:
    poll = BusyPoll(pipe[0], LIMIT_NS)
    waits(poll, 2)
    os.write(pipe[1], b"x")
    assert waits(poll, 3) == [True, True, True]


def test_on_one_processor_it_does_not_wait(pipe: tuple[int, int], processors: set[int]) -> None:
    processors.discard(1)
    poll = BusyPoll(pipe[0], LIMIT_NS)
    assert waits(poll, 2) == [False, False]
    os.write(pipe[1], b"x")
    assert poll.wait()
