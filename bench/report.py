"""The report: a JSON document with every sample, and the tables that are printed from it.

The figure of a cell is the median of its rounds. A ratio is the median of the ratios within each round, because other
load on the machine changes these ratios less than the times. A ratio above 1 means that the reference is faster.
"""

import datetime as dt
import os
import platform
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from bench import process, ratios
from bench.candidates import import_from
from bench.factory import is_other, other
from bench.measure import Plan, Sample
from bench.process import BenchError
from bench.workloads.base import SECONDS

REFERENCE = "vfsd-redis"
"""The candidate that all others are compared with, if it took part."""

SLOWER = 0.97
"""Two checkouts compared: a row is marked as slower if its ratio and the whole interval are below this value."""

Document: TypeAlias = dict[str, Any]
"""The report in the form in which it is stored as JSON."""


def document(plan: Plan, samples: Iterable[Sample], versions: dict[str, str], checkouts: Document) -> Document:
    """Return the report of *samples*, which were taken according to *plan* with the programs in *versions*.

    If two checkouts were compared, *checkouts* describes both (see :func:`describe`), by the keys "here" and "other".
    """
    results: dict[str, dict[str, Document]] = {workload.name: {} for workload, _ in plan.workloads}
    for sample in samples:
        cell = results[sample.workload].setdefault(sample.candidate, {"seconds": [], "done": sample.done, "error": ""})
        if sample.error:
            cell["error"] = sample.error
        else:
            cell["seconds"].append(sample.seconds)
    for cells in results.values():
        for cell in cells.values():
            cell["rate"] = _rate(cell)
    return {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "versions": versions,
        "checkouts": checkouts,
        "machine": _machine(),
        "rounds": plan.rounds,
        "workloads": {
            workload.name: {"what": workload.what, "unit": workload.unit, "size": size}
            for workload, size in plan.workloads
        },
        "results": {name: cells for name, cells in results.items() if cells},
    }


def _rate(cell: Document) -> float | None:
    """Return the median of the units per second of all rounds, or None if there is no sample."""
    return statistics.median(cell["done"] / seconds for seconds in cell["seconds"]) if cell["seconds"] else None


def versions_here(juicefs: Path | None) -> dict[str, str]:
    """Return the versions of all programs that take part. *juicefs* is the program of JuiceFS, if it is installed.

    Raises BenchError if another program is missing.
    """
    versions = _versions(process.ROOT)
    versions["trio"] = process.run([sys.executable, "-c", "import trio; print(trio.__version__)"]).strip()
    versions["Python"] = platform.python_version()
    versions["Redis"] = process.run(["redis-server", "--version"]).split("v=")[1].split()[0]
    if juicefs is not None:
        versions["JuiceFS"] = process.run([str(juicefs), "version"]).split()[-1]
    return versions


def _versions(checkout: Path) -> dict[str, str]:
    """Return what ``vfsd --version`` prints in *checkout*: the versions by the name of the program."""
    printed = process.run([sys.executable, "-m", "vfsd", "--version"], import_from(checkout), checkout)
    return dict(line.split(" ", 1) for line in printed.splitlines())


def describe(checkout: Path) -> Document:
    """Return the directory, the version and the git commit of *checkout*. The commit is empty if git knows none."""
    # git refuses a directory of another user, and the bench runs as root. The option applies to this command only.
    git = ["git", "-c", "safe.directory=*", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=10"]
    try:
        commit = process.run(git).strip()
    except BenchError:
        commit = ""
    return {"directory": str(checkout), "version": _versions(checkout)["vfsd"], "commit": commit}


def _machine() -> Document:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpus": os.cpu_count(),
        "model": models[0] if models else platform.machine(),
        "memory": memory,
        "scheduler": "SCHED_FIFO" if os.sched_getscheduler(0) == os.SCHED_FIFO else "SCHED_OTHER",
    }


# --- tables


def tables(report: Document) -> str:
    """Return *report* in Markdown: the conditions, the figures, the ratios and the failures. Raises BenchError."""
    parts = (conditions, _figures, _comparison, _ratios, _failures)
    try:
        return "\n\n".join(filter(None, (part(report) for part in parts)))
    except (KeyError, TypeError, AttributeError) as error:
        raise BenchError(f"this is no report of the bench: {type(error).__name__} {error}") from None


def conditions(report: Document) -> str:
    """Return one line: the date, the machine, the versions and the number of rounds."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    return (
        f"{report['date']}; {machine['cpus']} CPUs ({machine['model']}), {machine['memory'] >> 30} GiB,"
        f" {machine['scheduler']}; {versions}; median of {report['rounds']} rounds."
    )


def _columns(report: Document) -> list[str]:
    """Return all candidates, in the order in which they appear."""
    return list(dict.fromkeys(name for cells in report["results"].values() for name in cells))


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with *head* and *rows*. The first column holds words, the others hold figures."""
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _figures(report: Document) -> str:
    columns = _columns(report)
    rows = []
    for name, cells in report["results"].items():
        workload = report["workloads"][name]
        unit = workload["unit"]
        size = f" ({workload['size']:,})" if workload["size"] else ""
        label = f"{name}{size}, {'seconds' if unit == SECONDS else unit + '/s'}"
        rows.append([label, *(figure(cells.get(column), unit) for column in columns)])
    return markdown(["workload", *columns], rows)


def figure(cell: Document | None, unit: str) -> str:
    """Return the figure of *cell*: seconds if *unit* is SECONDS, else units per second."""
    if cell is None:
        return ""
    if cell["error"]:
        return "failed"
    rate = cell["rate"]
    return short(1 / rate if unit == SECONDS else rate)


def short(value: float) -> str:
    """Return *value* with three significant digits, or without decimals from 100 on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 (three digits)


def _ratios(report: Document) -> str:
    """Return the table of the reference divided by the others. The other checkout has a table of its own."""
    columns = [column for column in _columns(report) if column != REFERENCE and not is_other(column)]
    rows = []
    for name, cells in report["results"].items():
        reference = cells.get(REFERENCE)
        if reference is not None and reference["seconds"]:
            rows.append([name, *(_ratio(reference, cells.get(column)) for column in columns)])
    return markdown([f"speed of {REFERENCE} ÷", *columns], rows) if rows and columns else ""


def _ratio(reference: Document, cell: Document | None) -> str:
    """Return the median, the lowest and the highest ratio of a round: *reference* divided by *cell*."""
    if cell is None or not cell["seconds"]:
        return ""
    found = ratios.per_round(reference, cell)
    return f"{short(statistics.median(found))} ({short(min(found))} to {short(max(found))})"


class _Pair(NamedTuple):
    """A row of the comparison of two checkouts."""

    workload: str
    candidate: str
    ratio: ratios.Ratio


def _pairs(report: Document) -> Iterator[_Pair]:
    """Yield the rows for which both checkouts finished at least one round."""
    for workload, cells in report["results"].items():
        for name, cell in cells.items():
            if other(name) in cells and (found := ratios.per_round(cell, cells[other(name)])):
                yield _Pair(workload, name, ratios.summarize(found))


def _comparison(report: Document) -> str:
    """Return how many times as fast this checkout is as the other one, or nothing if there is no other one."""
    pairs = list(_pairs(report))
    if not pairs:
        return ""
    rows = [[pair.workload, pair.candidate, f"{pair.ratio.median:.3f}", *_interval(pair.ratio)] for pair in pairs]
    mean = statistics.geometric_mean(pair.ratio.median for pair in pairs)
    rows.append(["geometric mean", "", f"{mean:.3f}", "", ""])
    head = ["workload", "candidate", "speed, here ÷ other", "95 % confidence interval", ""]
    return "\n\n".join((_legend(report["checkouts"]), markdown(head, rows), _verdict(pairs)))


def _interval(ratio: ratios.Ratio) -> list[str]:
    """Return the interval and the mark of a slower row."""
    interval = "needs 2 rounds" if ratio.low == 0 else f"{ratio.low:.3f} to {ratio.high:.3f}"
    return [interval, "**slower**" if ratio.is_below(SLOWER) else ""]


def _legend(checkouts: Document) -> str:
    """Return a line that says what "here" and "other" are."""
    here, there = (
        f"vfsd {checkout['version']} of {checkout['directory']}"
        + f" (commit {checkout['commit']})" * bool(checkout["commit"])
        for checkout in (checkouts["here"], checkouts["other"])
    )
    return f"Here: {here}. Other: {there}. A value above 1 means that this checkout is faster."


def _verdict(pairs: Sequence[_Pair]) -> str:
    slower = [f"{pair.workload} ({pair.candidate})" for pair in pairs if pair.ratio.is_below(SLOWER)]
    return f"Below {SLOWER} with the whole interval: {', '.join(slower) or 'no row'}."


def _failures(report: Document) -> str:
    return "\n".join(
        f"- {name}, {candidate}: {cell['error']}"
        for name, cells in report["results"].items()
        for candidate, cell in cells.items()
        if cell["error"]
    )
