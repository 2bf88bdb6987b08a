"""Growth: the time for one unit of work at two sizes, and their ratio. It shows what grows worse than its work.

A ratio near 1 is flat. A ratio near that of the sizes is a unit that costs as much as all there is: quadratic as a
whole. Each figure is the smallest of a few runs, because other load on the machine makes a run longer and never
shorter. Of a share of what once fitted, the smallest is the worst.
"""

from collections.abc import Callable
from pathlib import Path

from bench.growth.base import RUNS, Row, empty_place, seconds
from bench.growth.directories import DIRECTORIES
from bench.growth.large_files import LARGE_FILES
from bench.growth.loading import LOADING
from bench.growth.memory_limit import MEMORY_LIMIT
from bench.growth.others import OTHERS
from bench.growth.skills import SKILLS
from bench.report import markdown, short

FACTOR = 10
"""The larger size divided by the smaller."""

_ROWS = (*DIRECTORIES, *SKILLS, *LARGE_FILES, *OTHERS, *LOADING, *MEMORY_LIMIT)


def _figure(base: Path, row: Row, size: int) -> float:
    """Return the figure of *row* at *size*: the smallest of some runs."""
    with empty_place(base, on_sqlite=row.on_sqlite) as place:
        run = row.prepare(place, size)
        return min(seconds(run) * 1e6 if row.is_timed else run() for _ in range(RUNS))


def _ratio(small: float, large: float) -> str:
    """Return how many times *small* is *large*. A limit on memory that never recovers has no such number."""
    return f"{large / small:.2f}" if small else "nan"


def table(base: Path, scale: float, show: Callable[[str], object]) -> str:
    """Return the table of all rows, with their sizes multiplied by *scale*. *show* gets each row when it is known."""
    rows = []
    for number, row in enumerate(_ROWS):
        small = max(1, round(row.small * scale))
        sizes = (small, small * FACTOR)
        figures = [_figure(base / f"{number}-{size}", row, size) for size in sizes]
        cells = [*(f"{size:,}" for size in sizes), *map(short, figures), _ratio(*figures)]
        rows.append([f"{row.name}, {row.figure}", *cells])
        show(" ".join(rows[-1]))
    return markdown(["work", "SIZE 1", "SIZE 2", "at SIZE 1", "at SIZE 2", "ratio"], rows)
