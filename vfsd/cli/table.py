"""Tables on the terminal, and how sizes and times look in their cells. Cells have two spaces between them."""

import datetime as dt

from vfsd import clock
from vfsd.cli.output import say
from vfsd.printable import printable

NOTHING = "-"
"""The cell for what is not known, or is not there."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_UNIT_STEP = 1024


def print_table(titles: list[str], rows: list[list[str]], *, err: bool = False) -> None:
    """Print *titles* and *rows*, each column as wide as its widest cell; with *err* on standard error."""
    shown = [list(map(printable, row)) for row in (titles, *rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), err=err)


def size(count: float) -> str:
    """Return *count* bytes in the unit that keeps the number short."""
    for unit in _UNITS:
        if count < _UNIT_STEP or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _UNIT_STEP
    raise AssertionError("unreachable")


def age(since_ns: int) -> str:
    """Return how long ago *since_ns* (ns since 1970) was."""
    seconds: int = max(0, clock.now() - since_ns) // 1_000_000_000
    for step, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * step:
            return f"{seconds // step} {unit}"
    return f"{seconds} s"


def moment(time_ns: int) -> str:
    """Return *time_ns* (ns since 1970) as date and time, in UTC. A time that no calendar has is shown as it is."""
    try:
        return f"{dt.datetime.fromtimestamp(time_ns // 1_000_000_000, dt.UTC):%Y-%m-%d %H:%M:%S}Z"
    except (ValueError, OverflowError, OSError):
        return f"{time_ns} ns"
