"""Times that look alike to programs that compare milliseconds."""

import pytest

from vfsd.tree.tree import MILLISECOND, look_alike, next_different

AT = 1_700_000_000_000 * MILLISECOND


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


@pytest.mark.parametrize("since", [-400_000, 0, 1, 499_999, 500_000, 500_001, 999_999])
def test_the_next_different_time_is_the_first_that_differs(since: int) -> None:
    found = next_different(AT + since)
    assert not look_alike(AT + since, found)
    assert look_alike(AT + since, found - 1)
    assert 0 < found - (AT + since) <= MILLISECOND
