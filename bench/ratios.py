"""Statistics of a comparison in rounds: the ratio of two candidates, its confidence interval, and the mean of ratios.

Both candidates run in the same round, so other load on the machine changes both times. The ratio of one round is
therefore steadier than the times themselves. Ratios multiply, so the interval is computed from their logarithms.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_HIGHEST_T = 1000.0
"""More than the quantile for 1 degree of freedom, 12.7."""


class Ratio(NamedTuple):
    """How many times as fast one candidate is as the other. *low* to *high* is the 95 % confidence interval.

    With a single round there is no interval: *low* is 0 and *high* infinite.
    """

    median: float
    low: float
    high: float

    def is_below(self, limit: float) -> bool:
        """Whether the median and the whole interval are less than *limit*."""
        return self.median < limit and self.high < limit


def per_round(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[float]:
    """Return, for each round, how many times as fast the cell *ours* of a report is as the cell *theirs*.

    A candidate that failed has fewer samples than the other one. Rounds that only one of them finished do not count.
    """
    pairs = zip(ours["seconds"], theirs["seconds"], strict=False)
    return [(their_time / theirs["done"]) / (our_time / ours["done"]) for our_time, their_time in pairs]


def summarize(ratios: Sequence[float]) -> Ratio:
    """Return the median of *ratios*, one for each round, and the 95 % confidence interval of their mean."""
    median = statistics.median(ratios)
    if len(ratios) == 1:
        return Ratio(median, 0.0, math.inf)
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    margin = t_quantile(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Ratio(median, math.exp(mean - margin), math.exp(mean + margin))


def t_quantile(degrees: int, confidence: float = 0.95) -> float:
    """Return the t that Student's distribution with *degrees* of freedom keeps within -t and t with *confidence*.

    The normal distribution would be wrong here: with 5 rounds the quantile is 2.78, not 1.96.
    """
    low, high = 0.0, _HIGHEST_T
    for _ in range(64):  # each step halves the error: 64 steps reach the precision of a float
        middle = (low + high) / 2
        if _probability_within(middle, degrees) < confidence:
            low = middle
        else:
            high = middle
    return high


def _probability_within(t: float, degrees: int) -> float:
    """Return the probability of -t to t, by the finite series in Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = degrees % 2 == 1
    term = cosine if is_odd else 1.0
    total = 0.0
    for power in range(1 if is_odd else 0, degrees - 1, 2):
        total += term
        term *= cosine * cosine * (power + 1) / (power + 2)
    return (angle + sine * total) * 2 / math.pi if is_odd else sine * total
