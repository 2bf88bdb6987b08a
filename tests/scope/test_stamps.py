"""The times of changes: in order, never twice, and not ahead of the clock."""

import random
import time

import pytest

from vfsd import clock
from vfsd.scope.stamps import MAX_LEAD, stamp

AT = 1_700_000_000 * 10**9
RUNS, STEPS = 20, 2_000


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
def test_the_next_time(last_ns: int, expected: int) -> None:
    assert stamp(AT, last_ns) == expected


def test_the_log_says_once_that_times_follow_a_clock_that_was_set_back(caplog: pytest.LogCaptureFixture) -> None:
    last_ns = AT + 3_600 * 10**9
    for expected in (AT, AT + 1, AT + 2):
        last_ns = stamp(AT, last_ns)
        assert last_ns == expected
    assert caplog.messages == ["the clock is 3600.0 s behind the last change: times follow the clock"]


@pytest.mark.parametrize("run", range(RUNS))
def test_times_grow_whatever_the_clock_does(run: int) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    now_ns, last_ns = AT, 0
    for _ in range(STEPS):
        step = chance.choice((0, 0, 1, 1_000, 10**6, 10**9, -1, -(10**6), -(10**8), -MAX_LEAD, -3_600 * 10**9))
        now_ns += step
        time_ns = stamp(now_ns, last_ns)
        if last_ns - now_ns >= MAX_LEAD:
            assert time_ns == now_ns  # set back too far
        else:
            assert time_ns == max(now_ns, last_ns + 1)
            assert time_ns - now_ns <= MAX_LEAD
        last_ns = time_ns


def test_what_the_kernel_calls_now_is_known_from_its_coarse_clock() -> None:
    tick = round(time.clock_getres(5) * 1e9)
    coarse = time.clock_gettime_ns(5)
    for ticks in (0, 1, 9):
        for inexact in (-900, 0, 900):
            assert clock.is_kernel_now(coarse - ticks * tick + inexact)
    for other in (coarse - tick // 2, coarse + 10 * tick, coarse - 60 * tick, 0, coarse - 10**9 - tick // 3):
        assert not clock.is_kernel_now(other)
