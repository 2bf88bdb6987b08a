"""What was measured, for people and for later: a JSON document with every sample, and the tables made from it.

The figure of a cell is the median of its rounds. A ratio is the median of the ratios within each round, which is what
other load on the machine disturbs least; above 1, the reference is the faster one.
"""

import datetime as dt
import os
import platform
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from bench import process
from bench.measure import Plan, Sample
from bench.process import BenchError
from bench.workloads.base import SECONDS

REFERENCE = "vfsd-redis"
"""What the others are compared with, where it took part."""

Document: TypeAlias = dict[str, Any]
"""The report as JSON has it."""


def document(plan: Plan, samples: Iterable[Sample], versions: dict[str, str]) -> Document:
    """Return the report of *samples*, taken as *plan* says with *versions*."""
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
        "machine": _machine(),
        "rounds": plan.rounds,
        "workloads": {
            workload.name: {"what": workload.what, "unit": workload.unit, "size": size}
            for workload, size in plan.workloads
        },
        "results": {name: cells for name, cells in results.items() if cells},
    }


def _rate(cell: Document) -> float | None:
    """Return the median of what was done a second; None if there is no sample."""
    return statistics.median(cell["done"] / seconds for seconds in cell["seconds"]) if cell["seconds"] else None


def versions_here(juicefs: Path | None) -> dict[str, str]:
    """Return the versions of all that takes part; *juicefs* is its program. Raises BenchError if one is missing."""
    lines = process.run([sys.executable, "-m", "vfsd", "--version"]).splitlines()
    versions = dict(line.split(" ", 1) for line in lines)
    versions["trio"] = process.run([sys.executable, "-c", "import trio; print(trio.__version__)"]).strip()
    versions["Python"] = platform.python_version()
    versions["Redis"] = process.run(["redis-server", "--version"]).split("v=")[1].split()[0]
    if juicefs is not None:
        versions["JuiceFS"] = process.run([str(juicefs), "version"]).split()[-1]
    return versions


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
    """Return *report* in Markdown: the conditions, the figures, the ratios, the failures. Raises BenchError."""
    try:
        return "\n\n".join(filter(None, (_conditions(report), _figures(report), _ratios(report), _failures(report))))
    except (KeyError, TypeError, AttributeError) as error:
        raise BenchError(f"this is no report of the bench: {type(error).__name__} {error}") from None


def _conditions(report: Document) -> str:
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
    """Return a table: the first column words, the others figures."""
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
        rows.append([label, *(_figure(cells.get(column), unit) for column in columns)])
    return markdown(["workload", *columns], rows)


def _figure(cell: Document | None, unit: str) -> str:
    if cell is None:
        return ""
    if cell["error"]:
        return "failed"
    rate = cell["rate"]
    return _short(1 / rate if unit == SECONDS else rate)


def _short(value: float) -> str:
    """Return *value* with three digits that mean something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 (three digits)


def _ratios(report: Document) -> str:
    columns = [column for column in _columns(report) if column != REFERENCE]
    rows = []
    for name, cells in report["results"].items():
        reference = cells.get(REFERENCE)
        if reference is not None and reference["seconds"]:
            rows.append([name, *(_ratio(reference, cells.get(column)) for column in columns)])
    return markdown([f"speed of {REFERENCE} ÷", *columns], rows) if rows and columns else ""


def _ratio(reference: Document, other: Document | None) -> str:
    """Return median, least and most of how many times as fast as *other* the *reference* was, round by round."""
    if other is None or not other["seconds"]:
        return ""
    pairs = zip(reference["seconds"], other["seconds"], strict=False)  # one that failed has fewer
    ratios = [(theirs / other["done"]) / (ours / reference["done"]) for ours, theirs in pairs]
    return f"{_short(statistics.median(ratios))} ({_short(min(ratios))} to {_short(max(ratios))})"


def _failures(report: Document) -> str:
    return "\n".join(
        f"- {name}, {candidate}: {cell['error']}"
        for name, cells in report["results"].items()
        for candidate, cell in cells.items()
        if cell["error"]
    )
