"""The time of a modification: never in a millisecond that was seen, otherwise by the clock."""

import time

import pytest

from vfsd.clock import now
from vfsd.tree.draft import MAX_LEAD, stamp
from vfsd.tree.inode import MILLISECOND, look_alike

AT = 1_700_000_000_000 * MILLISECOND


def test_now_is_the_time_of_day_in_nanoseconds() -> None:
    before = time.time_ns()
    between = now()
    assert before <= between <= time.time_ns()


@pytest.mark.parametrize(
    ("now_ns", "last_ns", "shown", "expected"),
    [
        pytest.param(AT + 7, AT + 3, False, AT + 7, id="unseen: the clock, to the nanosecond"),
        pytest.param(AT + 7, AT + 3, True, AT + MILLISECOND + 3, id="seen: a millisecond later"),
        pytest.param(AT + 3, AT + 3, True, AT + MILLISECOND + 3, id="seen at this very nanosecond"),
        pytest.param(AT + 1_300_000, AT + 600_000, True, AT + 1_600_000, id="seen, and rounded it would be the same"),
        pytest.param(AT + 1_500_000, AT + 600_000, True, AT + 1_500_000, id="seen, and rounded it is another"),
        pytest.param(AT + MILLISECOND, AT + 3, True, AT + MILLISECOND, id="seen, and the next has begun"),
        pytest.param(AT + 9 * MILLISECOND, AT, True, AT + 9 * MILLISECOND, id="seen long ago"),
        pytest.param(AT, AT + 5 * MILLISECOND, True, AT + 6 * MILLISECOND, id="seen, and a little ahead already"),
        pytest.param(
            AT, AT + 5 * MILLISECOND, False, AT + 5 * MILLISECOND, id="unseen, and a little ahead: no way back"
        ),
        pytest.param(AT, AT + MAX_LEAD, True, AT + MAX_LEAD + MILLISECOND, id="as far ahead as may be"),
        pytest.param(AT, AT + MAX_LEAD + 1, True, AT, id="too far ahead: follow the clock"),
        pytest.param(AT, AT + MAX_LEAD + 1, False, AT, id="too far ahead and unseen: follow the clock"),
        pytest.param(AT, -1, True, AT, id="before 1970"),
        pytest.param(-5, -3 * MILLISECOND, True, -5, id="a clock before 1970"),
        pytest.param(AT, 2**63 - 1, True, AT, id="the end of time"),
    ],
)
def test_stamp(now_ns: int, last_ns: int, shown: bool, expected: int) -> None:
    assert stamp(now_ns, last_ns, shown) == expected


def test_changes_after_a_look_never_return_to_the_millisecond_that_was_seen() -> None:
    seen = AT + MILLISECOND // 5
    first = stamp(AT + 2 * MILLISECOND // 5, seen, True)
    second = stamp(AT + 3 * MILLISECOND // 5, first, False)
    assert second // MILLISECOND > seen // MILLISECOND


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        pytest.param(200_000, 400_000, True, id="cut off and rounded to the same"),
        pytest.param(200_000, 700_000, True, id="cut off to the same"),
        pytest.param(700_000, 1_200_000, True, id="rounded to the same"),
        pytest.param(400_000, 1_000_000, False, id="neither"),
        pytest.param(600_000, 1_500_000, False, id="less than a millisecond apart, and neither"),
    ],
)
def test_look_alike(one: int, other: int, alike: bool) -> None:
    assert look_alike(AT + one, AT + other) is alike
    assert look_alike(AT + other, AT + one) is alike
