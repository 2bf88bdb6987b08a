"""Waiting without sleeping: it finds what is there, ends when it was told to, and is left out where it does not pay."""

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


def waits(brief: BusyPoll, calls: int) -> list[bool]:
    """Return, for each of so many calls, whether it did more than look."""
    done = []
    for _ in range(calls):
        before = brief.waits
        brief.wait()
        done.append(brief.waits > before)
    return done


def test_it_finds_what_is_there(pipe: tuple[int, int], processors: set[int]) -> None:
    os.write(pipe[1], b"x")
    assert BusyPoll(pipe[0], LIMIT_NS).wait()


def test_it_ends_where_nothing_comes(pipe: tuple[int, int], processors: set[int]) -> None:
    assert not BusyPoll(pipe[0], LIMIT_NS).wait()


def test_in_vain_it_is_left_out_twice_as_often_each_time(pipe: tuple[int, int], processors: set[int]) -> None:
    assert waits(BusyPoll(pipe[0], LIMIT_NS), 12) == [True, False, True, False, False, False, True, *5 * [False]]


def test_a_hit_brings_it_back(pipe: tuple[int, int], processors: set[int]) -> None:
    brief = BusyPoll(pipe[0], LIMIT_NS)
    waits(brief, 2)
    os.write(pipe[1], b"x")
    assert waits(brief, 3) == [True, True, True]


def test_on_one_processor_it_only_looks(pipe: tuple[int, int], processors: set[int]) -> None:
    processors.discard(1)
    brief = BusyPoll(pipe[0], LIMIT_NS)
    assert waits(brief, 2) == [False, False]
    os.write(pipe[1], b"x")
    assert brief.wait()
