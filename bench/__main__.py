"""``python -m bench``: the command line. It decides what is measured, and sees that nothing is left afterwards."""

import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

import click

from bench import counts, measure, report
from bench.lab import NAMES, Lab, find_juicefs
from bench.process import BenchError
from bench.workloads import ALL
from bench.workloads.base import Workload


class _Chosen(click.ParamType[list[str]]):
    """Names with commas between, out of *known*."""

    name = "NAME,…"

    def __init__(self, known: dict[str, object]) -> None:
        self._known = known

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        names = value if isinstance(value, list) else str(value).split(",")
        for name in names:
            if name not in self._known:
                self.fail(f"{name} is none of {', '.join(self._known)}", param, ctx)
        return names


def _sizes(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    sizes = {}
    for pair in given:
        name, _, size = pair.partition("=")
        if name not in ALL or not size.isdecimal():
            raise click.BadParameter(f"{pair}: expected WORKLOAD=NUMBER, as in create=2000; --list has the names")
        sizes[name] = int(size)
    return sizes


def _scaled(workload: Workload, scale: float) -> int:
    return max(1, round(workload.size * scale)) if workload.size else 0


@contextmanager
def _workplace(directory: Path | None) -> Iterator[Path]:
    """Give a temporary directory; SIGTERM from now on ends the program as Ctrl-C does: after cleaning up."""

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    with tempfile.TemporaryDirectory(prefix="vfsd-bench-", dir=directory, ignore_cleanup_errors=True) as base:
        yield Path(base)


def _be_realtime() -> None:
    """Put this process, and all that it starts, before whatever else the machine does."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError as error:
        raise BenchError(f"--realtime needs the right to it (CAP_SYS_NICE): {error.strerror}") from None


def _list() -> None:
    for name, workload in ALL.items():
        click.echo(f"{name:22}{workload.size:>8,}  {workload.unit:12}{workload.what}")
    click.echo()
    for name, what in NAMES.items():
        click.echo(f"{name:22}{what}")


_directory = click.option(
    "--directory", type=click.Path(path_type=Path, exists=True), help="Where temporary files go, SQLite's among them."
)
_juicefs = click.option("--juicefs", type=click.Path(path_type=Path, exists=True), help="JuiceFS's program.")
_realtime = click.option("--realtime", is_flag=True, help="Run before everything else on the machine (SCHED_FIFO).")


@click.group(invoke_without_command=True)
@click.option("--only", type=_Chosen(dict(ALL)), help="Run these workloads.")
@click.option("--candidates", type=_Chosen(dict(NAMES)), help="Compare these.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="How often each is measured.")
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), default=1.0, help="Multiply every size.")
@click.option("--size", "sizes", multiple=True, callback=_sizes, metavar="WORKLOAD=N", help="The size of one workload.")
@click.option("--json", "to", type=click.Path(path_type=Path, dir_okay=False), help="Write every sample to this file.")
@click.option("--list", "listing", is_flag=True, help="Say what there is, and end.")
@_directory
@_juicefs
@_realtime
@click.pass_context
def main(  # noqa: PLR0913, PLR0917 (one for each option)
    ctx: click.Context,
    only: list[str] | None,
    candidates: list[str] | None,
    rounds: int,
    scale: float,
    sizes: dict[str, int],
    to: Path | None,
    listing: bool,
    directory: Path | None,
    juicefs: Path | None,
    realtime: bool,
) -> None:
    """Measure how fast vfsd is, beside what it could be and what else there is. Takes root, for mounts and caches."""
    if ctx.invoked_subcommand:
        return
    if listing:
        _list()
        return
    if realtime:
        _be_realtime()
    chosen = [ALL[name] for name in only or ALL]
    workloads = [(workload, sizes.get(workload.name, _scaled(workload, scale))) for workload in chosen]
    plan = measure.Plan(workloads, candidates or list(NAMES), rounds)
    program = find_juicefs(juicefs)
    versions = report.versions_here(program)
    samples: list[measure.Sample] = []
    try:
        with _workplace(directory) as base, closing(measure.run(Lab(base, program), plan)) as running:
            for sample in running:
                samples.append(sample)
                _show(sample)
    finally:  # what an interrupted run has measured took its time too
        _write(report.document(plan, samples, versions), to)


def _show(sample: measure.Sample) -> None:
    taken = sample.error or f"{sample.seconds:.4f} s"
    click.echo(f"{sample.workload:22}{sample.candidate:16}{taken}", err=True)


def _write(result: report.Document, to: Path | None) -> None:
    """Print *result* as tables, and write it to the file *to* if there is one."""
    if to is not None:
        to.write_text(json.dumps(result, indent=1) + "\n")
    click.echo(report.tables(result))


@main.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def table(file: Path) -> None:
    """Print a report that was written by --json as Markdown."""
    try:
        click.echo(report.tables(json.loads(file.read_text())))
    except ValueError as error:
        raise BenchError(f"{file} is no JSON: {error}") from None


@main.command(name="counts")
@click.option("--count", type=click.IntRange(min=1), default=200, show_default=True, help="Operations of each kind.")
@click.option("--files", type=click.IntRange(min=1), default=100_000, show_default=True, help="Files held in memory.")
@click.option("--mebibytes", type=click.IntRange(min=1), default=512, show_default=True, help="Content held in memory.")
@_directory
def print_counts(count: int, files: int, mebibytes: int, directory: Path | None) -> None:
    """Count requests, commits, bytes and memory, instead of time."""
    with _workplace(directory) as base:
        click.echo(counts.operations(base, count) + "\n")
        click.echo(counts.memory(base, files, mebibytes))


def run() -> None:
    """Run the command line; what goes wrong is said in a line."""
    try:
        main(prog_name="python -m bench")
    except (BenchError, OSError) as error:
        click.echo(f"bench: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    run()
