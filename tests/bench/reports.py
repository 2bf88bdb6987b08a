"""Reports with made-up samples."""

from collections.abc import Mapping, Sequence

from bench.measure import Plan, Sample
from bench.report import Document, document
from bench.workloads import ALL

Times = Mapping[str, Mapping[str, Sequence[float]]]
"""The seconds of the rounds, by workload and candidate."""


def report(times: Times) -> Document:
    """Return a report of *times*, in which "other" is a checkout at /other."""
    plan = Plan([(ALL[name], ALL[name].size) for name in times], ["vfsd-redis"], 5)
    samples = [
        Sample(name, candidate, seconds, ALL[name].done(ALL[name].size))
        for name, cells in times.items()
        for candidate, rounds in cells.items()
        for seconds in rounds
    ]
    checkouts = {
        "here": {"directory": "/here", "version": "1.0", "commit": "abc"},
        "other": {"directory": "/other", "version": "0.9", "commit": ""},
    }
    made = document(plan, samples, {"vfsd": "1.0"}, checkouts)
    return {
        **made,
        "date": "2026-01-01T00:00:00+00:00",
        "machine": {"cpus": 2, "model": "a & b", "memory": 8 << 30, "scheduler": "SCHED_OTHER"},
    }
