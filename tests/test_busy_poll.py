"""Polling before a wait: it finds what is there, ends after its limit, and is skipped when it does not help."""

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
    """The processors that this process may use."""
    allowed = {0, 1}
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: allowed)
    return allowed


def waits(poll: BusyPoll, calls: int) -> list[bool]:
    """Return, for each of so many calls, whether it did more than look."""
    done = []
    for _ in range(calls):
        before = poll.waits
        poll.wait()
        done.append(poll.waits > before)
    return done


def test_it_finds_what_is_there(pipe: tuple[int, int], processors: set[int]) -> None:
    os.write(pipe[1], b"x")
    assert BusyPoll(pipe[0], LIMIT_NS).wait()


def test_it_ends_if_nothing_comes(pipe: tuple[int, int], processors: set[int]) -> None:
    assert not BusyPoll(pipe[0], LIMIT_NS).wait()


def test_after_each_failure_it_is_skipped_twice_as_often(pipe: tuple[int, int], processors: set[int]) -> None:
    assert waits(BusyPoll(pipe[0], LIMIT_NS), 12) == [True, False, True, False, False, False, True, *5 * [False]]


def test_after_a_success_it_polls_each_time_again(pipe: tuple[int, int], processors: set[int]) -> None:
    poll = BusyPoll(pipe[0], LIMIT_NS)
    waits(poll, 2)
    os.write(pipe[1], b"x")
    assert waits(poll, 3) == [True, True, True]


def test_on_one_processor_it_looks_once_and_does_not_poll(pipe: tuple[int, int], processors: set[int]) -> None:
    processors.discard(1)
    poll = BusyPoll(pipe[0], LIMIT_NS)
    assert waits(poll, 2) == [False, False]
    os.write(pipe[1], b"x")
    assert poll.wait()
