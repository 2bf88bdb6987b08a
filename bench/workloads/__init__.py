"""What is measured: each workload prepares (not timed) and hands back what is timed. They know no candidate by name."""

from bench.workloads.base import Workload
from bench.workloads.large import LARGE
from bench.workloads.programs import PROGRAMS
from bench.workloads.scale import SCALE
from bench.workloads.small import SMALL
from bench.workloads.start import START

ALL: dict[str, Workload] = {workload.name: workload for workload in (*SMALL, *LARGE, *PROGRAMS, *START, *SCALE)}
"""Every workload by name, in the order in which they run and are reported."""
