"""The workloads: each prepares, which is not timed, and returns a call, which is timed."""

from bench.workloads.base import Workload
from bench.workloads.large import LARGE
from bench.workloads.programs import PROGRAMS
from bench.workloads.scale import SCALE
from bench.workloads.small import SMALL
from bench.workloads.start import START

GROUPS: dict[str, tuple[Workload, ...]] = {
    "Small files and names": SMALL,
    "Large files": LARGE,
    "Programs": PROGRAMS,
    "Start": START,
    "Growth": SCALE,
}
"""The workloads by subject, in the order in which they run and are reported."""

ALL: dict[str, Workload] = {workload.name: workload for group in GROUPS.values() for workload in group}
"""The workloads by name, in the same order."""
