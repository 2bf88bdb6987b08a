"""The ratio of two checkouts: the median, the confidence interval, the geometric mean and the mark of a slower row."""

import math

import pytest

from bench import ratios
from bench.measure import Plan, mount_orders, order_of_round
from bench.report import tables
from tests.bench.reports import report


@pytest.mark.parametrize(
    ("degrees", "expected"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042), (1000, 1.962)]
)
def test_the_quantile_agrees_with_the_printed_tables(degrees: int, expected: float) -> None:
    assert ratios.t_quantile(degrees) == pytest.approx(expected, abs=0.0005)


def test_the_interval_is_that_of_the_logarithms() -> None:
    found = ratios.summarize([1.0, 2.0, 4.0])
    margin = 4.3027 * math.log(2) / math.sqrt(3)
    assert found.median == 2
    assert found.low == pytest.approx(2 * math.exp(-margin), rel=1e-4)
    assert found.high == pytest.approx(2 * math.exp(margin), rel=1e-4)


def test_equal_rounds_have_an_interval_of_one_point() -> None:
    assert ratios.summarize([0.5] * 5) == pytest.approx((0.5, 0.5, 0.5))


def test_one_round_has_no_interval() -> None:
    found = ratios.summarize([0.5])
    assert found == (0.5, 0.0, math.inf)
    assert not found.is_below(0.97)


def test_a_round_that_only_one_candidate_finished_does_not_count() -> None:
    ours, theirs = {"seconds": [2.0, 1.0, 8.0], "done": 10}, {"seconds": [1.0, 2.0], "done": 10}
    assert ratios.per_round(ours, theirs) == [0.5, 2.0]


def _rows(printed: str) -> dict[str, list[str]]:
    """Return the rows of the comparison by their first cell."""
    lines = printed.split("speed, here ÷ other", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells}


def test_the_table_of_two_checkouts_marks_only_rows_that_are_slower_with_their_whole_interval() -> None:
    printed = tables(
        report(
            {
                "create": {"vfsd-redis": [2.0, 2.02, 1.98], "vfsd-redis-other": [1.0, 1.0, 1.0]},
                "append": {"vfsd-redis": [2.0, 1.0, 1.5], "vfsd-redis-other": [1.0, 1.0, 1.0]},
                "mkdir": {"vfsd-redis": [1.0, 1.0, 1.0], "vfsd-redis-other": [3.0, 3.0, 3.0]},
                "unlink": {"vfsd-redis": [1.0]},
            }
        )
    )
    rows = _rows(printed)
    assert list(rows) == ["create", "append", "mkdir", "geometric mean"]
    assert rows["create"] == ["vfsd-redis", "0.500", "0.488 to 0.513", "**slower**"]
    assert rows["append"][1] == "0.667"
    assert rows["append"][3] == ""
    assert rows["mkdir"] == ["vfsd-redis", "3.000", "3.000 to 3.000", ""]
    assert rows["geometric mean"][1] == "1.000"
    assert "Below 0.97 with the whole interval: create (vfsd-redis)." in printed
    assert "Here: vfsd 1.0 of /here (commit abc). Other: vfsd 0.9 of /other." in printed


def test_without_a_slower_row_the_table_says_so() -> None:
    printed = tables(report({"create": {"vfsd-redis": [1.0], "vfsd-redis-other": [1.0]}}))
    assert _rows(printed)["create"] == ["vfsd-redis", "1.000", "needs 2 rounds", ""]
    assert "Below 0.97 with the whole interval: no row." in printed


def test_a_comparison_mounts_both_in_either_order() -> None:
    names = ("vfsd-redis", "vfsd-redis-other", "floor")
    halves = mount_orders(Plan([], names, 5))
    assert [(part.rounds, tuple(part.candidates)) for part in halves] == [(3, names), (2, names[::-1])]
    for plan in (Plan([], names, 1), Plan([], ("vfsd-redis", "floor"), 5)):
        assert mount_orders(plan) == [plan]


def test_a_pair_runs_together_and_each_of_the_two_is_first_in_every_second_round() -> None:
    names = ["vfsd-redis", "vfsd-redis-other", "floor"]
    assert [order_of_round(names, number) for number in range(4)] == [
        ["vfsd-redis", "vfsd-redis-other", "floor"],
        ["floor", "vfsd-redis-other", "vfsd-redis"],
        ["vfsd-redis", "vfsd-redis-other", "floor"],
        ["floor", "vfsd-redis-other", "vfsd-redis"],
    ]
