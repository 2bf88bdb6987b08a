"""The times of changes: in order, never twice, and not ahead of the clock."""

import random
import time

import pytest

from vfsd import clock
from vfsd.scope.stamps import MAX_LEAD, Stamps

AT = 1_700_000_000 * 10**9
RUNS, STEPS = 20, 2_000


class SetClock:
    """A clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = AT
        monkeypatch.setattr(clock, "now", lambda: self.now)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    return SetClock(monkeypatch)


def test_now_is_the_time_of_day_in_nanoseconds() -> None:
    before = time.time_ns()
    between = clock.now()
    assert before <= between <= time.time_ns()


@pytest.mark.parametrize(
    ("last_ns", "expected"),
    [
        pytest.param(AT - 1, AT, id="the clock"),
        pytest.param(AT, AT + 1, id="the clock stands still"),
        pytest.param(AT + MAX_LEAD - 1, AT + MAX_LEAD, id="set back by less than a second"),
        pytest.param(AT + MAX_LEAD, AT, id="set back by a second: follow it"),
        pytest.param(2**63 - 1, AT, id="the end of time"),
        pytest.param(-1, AT, id="before 1970"),
    ],
)
def test_the_next_time(watch: SetClock, last_ns: int, expected: int) -> None:
    assert Stamps(last_ns).next() == expected


def test_the_log_says_once_that_times_follow_a_clock_that_was_set_back(
    watch: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    stamps = Stamps(AT + 3_600 * 10**9)
    assert [stamps.next() for _ in range(3)] == [AT, AT + 1, AT + 2]
    assert caplog.messages == ["the clock is 3600.0 s behind the last change: times follow the clock"]


@pytest.mark.parametrize("run", range(RUNS))
def test_times_grow_whatever_the_clock_does(watch: SetClock, run: int) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    stamps, given = Stamps(0), [0]
    for _ in range(STEPS):
        step = chance.choice((0, 0, 1, 1_000, 10**6, 10**9, -1, -(10**6), -(10**8), -MAX_LEAD, -3_600 * 10**9))
        watch.now += step
        time_ns = stamps.next()
        if given[-1] - watch.now >= MAX_LEAD:
            assert time_ns == watch.now  # set back too far
        else:
            assert time_ns == max(watch.now, given[-1] + 1)
            assert time_ns - watch.now <= MAX_LEAD
        given.append(time_ns)


def test_what_the_kernel_calls_now_is_known_from_its_coarse_clock() -> None:
    tick = round(time.clock_getres(5) * 1e9)
    coarse = time.clock_gettime_ns(5)
    for ticks in (0, 1, 9):
        for inexact in (-900, 0, 900):
            assert clock.is_kernel_now(coarse - ticks * tick + inexact)
    for other in (coarse - tick // 2, coarse + 10 * tick, coarse - 60 * tick, 0, coarse - 10**9 - tick // 3):
        assert not clock.is_kernel_now(other)
