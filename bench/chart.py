"""A picture of a report: for each workload the speed of vfsd and of JuiceFS, relative to the floor of the stack.

The units of the workloads differ, so a bar shows the speed as a percentage of the floor's. The scale is linear, because
the length of a bar means nothing on a logarithmic one. The same report always gives the same bytes.
"""

import io
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MultipleLocator, PercentFormatter

from bench import report
from bench.process import BenchError
from bench.report import REFERENCE, Document
from bench.workloads import GROUPS
from bench.workloads.base import SECONDS

_FLOOR = "floor"
_JUICEFS = ("juicefs-fsync", "juicefs")
"""JuiceFS promises the same as vfsd only with fsync, so that candidate comes first where it was measured."""

_WIDTH_IN = 9.375
"""900 pixels: the width of a README. An SVG has 72 points to an inch, and 96 pixels."""

_ROW_IN = 0.37
_TOP_IN = 1.4
_BOTTOM_IN = 0.95
_LEFT, _RIGHT = 0.315, 0.865
"""The sides of the bars, as parts of the width. Labels are on the left, the floor's figures on the right."""

_LONGEST = 2.0
"""A bar ends at 200 %. A longer one would make all others too short to read."""

_STYLE = {
    "font.family": "sans-serif",
    # The first one comes with matplotlib, so the layout is the same on each machine. It is wide, so each of the others
    # fits if the reader of the picture has only that one.
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 8.0,
    "svg.fonttype": "none",  # text stays text: it can be searched and read aloud
    "svg.hashsalt": "vfsd",  # without it the identifiers are random
}
"""Applied to matplotlib's defaults, not to the settings of the user: the same report gives the same bytes."""

_MARGIN = 0.012

_EXPLANATION = (
    "A bar shows the speed in percent of the floor's speed: longer is faster. The number next to it has the unit on the"
    ' right. "with fsync": JuiceFS calls fsync after each write, because only then is the write stored.'
)
_LINE_CHARACTERS = 160
"""The length of a line of small text that fits the width."""

_INK, _PALE_INK = "#1f2937", "#6b7280"
_GRID, _FLOOR_COLOR = "#d1d5db", "#e5e7eb"
_VFSD_COLOR, _JUICEFS_COLOR = "#2563eb", "#ea8a1a"


class _Bar(NamedTuple):
    """The *speed* relative to the floor, and the *figure* in the unit of the workload."""

    speed: float
    figure: str


class _Row(NamedTuple):
    """One workload of the picture. *juicefs* is None if JuiceFS was not measured."""

    name: str
    what: str
    floor: str
    vfsd: _Bar
    juicefs: _Bar | None


def svg(document: Document) -> bytes:
    """Return the picture of the report *document*. Raises BenchError if it has no workload to draw.

    A workload is drawn if both vfsd and the floor have a figure for it.
    """
    try:
        groups = [(title, rows) for title, rows in _groups(document) if rows]
        caption = report.conditions(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise BenchError(f"this is no report of the bench: {type(error).__name__} {error}") from None
    if not groups:
        raise BenchError(f"there is nothing to draw: no workload has figures for both {REFERENCE} and {_FLOOR}")
    with style.context(["default", _STYLE]):
        return _drawn(groups, caption)


def _groups(document: Document) -> Iterator[tuple[str, list[_Row]]]:
    for title, workloads in GROUPS.items():
        names = [workload.name for workload in workloads if workload.name in document["results"]]
        yield title, [row for name in names if (row := _row(document, name))]


def _row(document: Document, name: str) -> _Row | None:
    workload, cells = document["workloads"][name], document["results"][name]
    vfsd, floor = cells.get(REFERENCE), cells.get(_FLOOR)
    if not vfsd or not floor or not vfsd["rate"] or not floor["rate"]:
        return None
    unit = workload["unit"]
    suffix = " s" if unit == SECONDS else f" {unit}/s"
    juicefs = None
    for candidate in _JUICEFS:
        cell = cells.get(candidate)
        if cell and cell["rate"]:
            note = " with fsync" if candidate == _JUICEFS[0] else ""
            juicefs = _Bar(cell["rate"] / floor["rate"], report.figure(cell, unit) + note)
            break
    return _Row(
        name,
        workload["what"],
        report.figure(floor, unit) + suffix,
        _Bar(vfsd["rate"] / floor["rate"], report.figure(vfsd, unit)),
        juicefs,
    )


# --- drawing


def _drawn(groups: list[tuple[str, list[_Row]]], caption: str) -> bytes:
    lines = sum(len(rows) + 0.75 for _, rows in groups)
    height = _TOP_IN + _ROW_IN * lines + _BOTTOM_IN
    figure = Figure(figsize=(_WIDTH_IN, height), facecolor="white")
    figure.set_canvas(FigureCanvasSVG(figure))
    bottom, top = _BOTTOM_IN / height, 1 - _TOP_IN / height
    axes = figure.add_axes((_LEFT, bottom, _RIGHT - _LEFT, top - bottom))
    _prepare_axes(axes, _limit(groups), lines)
    _draw_groups(axes, groups)
    _draw_head(figure, axes, height)
    figure.text(_MARGIN, 0.13 / height, _wrapped(caption), size=7, color=_PALE_INK, va="bottom")
    written = io.BytesIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return written.getvalue()


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _LINE_CHARACTERS))


def _limit(groups: list[tuple[str, list[_Row]]]) -> float:
    """Return the right end of the axis: the end of the longest bar, and space for its figure."""
    rows = [row for _, rows in groups for row in rows]
    longest = max(bar.speed for row in rows for bar in (row.vfsd, row.juicefs) if bar)
    return min(_LONGEST, max(1.0, longest)) + 0.2


def _prepare_axes(axes: Axes, limit: float, lines: float) -> None:
    axes.set_xlim(0, limit)
    axes.set_ylim(lines, 0)
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MultipleLocator(0.25))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.tick_params(axis="x", top=True, labeltop=True, length=0, colors=_PALE_INK, labelsize=7.5)
    axes.grid(axis="x", color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("speed, in percent of the floor's speed", color=_INK, size=8, labelpad=6)


def _draw_groups(axes: Axes, groups: list[tuple[str, list[_Row]]]) -> None:
    y = 0.0
    for title, rows in groups:
        axes.text(-0.55, y + 0.5, title, transform=axes.get_yaxis_transform(), size=9, weight="bold", color=_INK)
        y += 0.75
        for row in rows:
            _draw_row(axes, y + 0.5, row)
            y += 1.0


def _draw_row(axes: Axes, y: float, row: _Row) -> None:
    """Draw one workload with its middle at *y*."""
    across = axes.get_yaxis_transform()
    axes.text(-0.02, y - 0.04, row.name, transform=across, ha="right", va="bottom", size=8.5, color=_INK)
    axes.text(-0.02, y + 0.04, row.what, transform=across, ha="right", va="top", size=6.5, color=_PALE_INK)
    axes.text(1.01, y, row.floor, transform=across, ha="left", va="center", size=7.5, color=_PALE_INK)
    axes.barh(y, 1.0, 0.84, color=_FLOOR_COLOR)
    _draw_bar(axes, y - 0.19, row.vfsd, _VFSD_COLOR)
    if row.juicefs:
        _draw_bar(axes, y + 0.19, row.juicefs, _JUICEFS_COLOR)


def _draw_bar(axes: Axes, y: float, bar: _Bar, color: str) -> None:
    length = min(bar.speed, _LONGEST)
    figure = bar.figure if bar.speed <= _LONGEST else f"{bar.figure} ({bar.speed:.0%})"
    axes.barh(y, length, 0.33, color=color)
    axes.annotate(figure, (length, y), (3, 0), textcoords="offset points", va="center", size=7, color=_INK)


def _draw_head(figure: Figure, axes: Axes, height: float) -> None:
    """Draw the title, the explanation and the legend. Their distances from the top are in inches."""

    def write(text: str, top: float, size: float, color: str, weight: str = "normal") -> None:
        figure.text(_MARGIN, 1 - top / height, text, size=size, color=color, weight=weight, va="top")

    write("How fast is vfsd?", 0.16, 14, _INK, "bold")
    write(_wrapped(_EXPLANATION), 0.48, 7, _PALE_INK)
    legend = {
        "vfsd on Redis: each write is stored when it returns": _VFSD_COLOR,
        "JuiceFS on Redis": _JUICEFS_COLOR,
        "floor: the smallest file system on pyfuse3 and trio, without a store": _FLOOR_COLOR,
    }
    figure.legend(
        handles=[Patch(color=color, label=label) for label, color in legend.items()],
        loc="upper left",
        bbox_to_anchor=(_MARGIN, 1 - 0.83 / height),
        borderpad=0.0,
        borderaxespad=0.0,
        ncols=3,
        frameon=False,
        fontsize=8,
        labelcolor=_INK,
        handlelength=1.2,
        handleheight=0.9,
        columnspacing=1.6,
    )
    axes.annotate(
        "floor (100 %)",
        (1.0, 1.0),
        (5, 5.5),
        xycoords="axes fraction",
        textcoords="offset points",
        size=7.5,
        color=_PALE_INK,
    )
