"""``python -m bench``: the command line. It decides what is measured, and removes everything temporary afterwards."""

import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

import click

from bench import calls, counts, growth, measure, memory, process, report
from bench.factory import NAMES, CandidateFactory, check_checkout, find_juicefs, is_vfsd, other
from bench.process import BenchError
from bench.workloads import ALL
from bench.workloads.base import Workload


class _Chosen(click.ParamType[list[str]]):
    """Names out of *known*, separated by commas."""

    name = "NAME,…"

    def __init__(self, known: dict[str, object]) -> None:
        self._known = known

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        names = value if isinstance(value, list) else str(value).split(",")
        for name in names:
            if name not in self._known:
                self.fail(f"{name} is not one of {', '.join(self._known)}", param, ctx)
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
def _temporary_directory(directory: Path | None) -> Iterator[Path]:
    """Give a temporary directory below *directory*. Programs in Python keep their bytecode there.

    From now on SIGTERM ends the program as Ctrl-C does, so mounts and processes are removed.
    """

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    with tempfile.TemporaryDirectory(prefix="vfsd-bench-", dir=directory, ignore_cleanup_errors=True) as base:
        process.keep_bytecode(Path(base) / "bytecode")
        yield Path(base)


def _set_realtime_priority() -> None:
    """Give this process, and all processes that it starts, priority over the other processes of the machine."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError as error:
        raise BenchError(f"--realtime needs the capability CAP_SYS_NICE: {error.strerror}") from None


def _list() -> None:
    for name, workload in ALL.items():
        click.echo(f"{name:22}{workload.size:>8,}  {workload.unit:12}{workload.what}")
    click.echo()
    for name, what in NAMES.items():
        click.echo(f"{name:22}{what}")


_directory = click.option(
    "--directory", type=click.Path(path_type=Path, exists=True), help="Directory for temporary files and for SQLite."
)
_juicefs = click.option("--juicefs", type=click.Path(path_type=Path, exists=True), help="The program of JuiceFS.")
_realtime = click.option("--realtime", is_flag=True, help="Run before all other processes of the machine (SCHED_FIFO).")
_against = click.option(
    "--against",
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    metavar="DIR",
    help="Compare with the vfsd of another checkout: each vfsd candidate (default: vfsd-redis) also runs from DIR.",
)
_chart = click.option(
    "--chart", "picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw the report in this SVG file."
)


@click.group(invoke_without_command=True)
@click.option("--only", type=_Chosen(dict(ALL)), help="Run only these workloads.")
@click.option("--candidates", type=_Chosen(dict(NAMES)), help="Compare only these candidates.")
@click.option(
    "--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Measurements of each workload."
)
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), default=1.0, help="Multiply every size.")
@click.option("--size", "sizes", multiple=True, callback=_sizes, metavar="WORKLOAD=N", help="The size of one workload.")
@click.option("--json", "to", type=click.Path(path_type=Path, dir_okay=False), help="Write all samples to this file.")
@click.option("--list", "listing", is_flag=True, help="List the workloads and the candidates, and end.")
@_against
@_chart
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
    against: Path | None,
    picture: Path | None,
    directory: Path | None,
    juicefs: Path | None,
    realtime: bool,
) -> None:
    """Measure how fast vfsd is, and compare it with other file systems. Needs root, to mount and to drop caches."""
    if ctx.invoked_subcommand:
        return
    if listing:
        _list()
        return
    if realtime:
        _set_realtime_priority()
    chosen = [ALL[name] for name in only or ALL]
    workloads = [(workload, sizes.get(workload.name, _scaled(workload, scale))) for workload in chosen]
    plan = measure.Plan(workloads, _paired(candidates) if against else candidates or list(NAMES), rounds)
    if picture is not None:
        _check_matplotlib()
        _check_candidates(plan)
    program = find_juicefs(juicefs)
    versions, checkouts = report.versions_here(program), _checkouts(against)
    samples: list[measure.Sample] = []
    try:
        with ExitStack() as stack:
            base = stack.enter_context(_temporary_directory(directory))
            factory = CandidateFactory(base, program, against)
            for sample in stack.enter_context(closing(measure.run(factory, plan))):
                samples.append(sample)
                _show(sample)
    finally:  # an interrupted run also took time: write the samples that it has
        _write(report.document(plan, samples, versions, checkouts), to, picture)


def _paired(candidates: list[str] | None) -> list[str]:
    """Return *candidates*, with the candidate of the other checkout after each that is vfsd. Raises BenchError."""
    chosen = candidates or [report.REFERENCE]
    if not any(map(is_vfsd, chosen)):
        raise BenchError("--against compares two checkouts of vfsd, and --candidates names no vfsd")
    return [each for name in chosen for each in ([name, other(name)] if is_vfsd(name) else [name])]


def _checkouts(against: Path | None) -> report.Document:
    """Return the descriptions of this checkout and of *against*. Raises BenchError if that is no checkout."""
    if against is None:
        return {}
    check_checkout(against)
    return {"here": report.describe(process.ROOT), "other": report.describe(against)}


def _check_matplotlib() -> None:
    """Raise BenchError if matplotlib is missing: a long measurement must not end without the picture."""
    if find_spec("matplotlib") is None:
        raise BenchError("a chart needs matplotlib: pip install matplotlib")


def _check_candidates(plan: measure.Plan) -> None:
    """Raise BenchError if *plan* measures too little for a picture."""
    missing = [name for name in (report.REFERENCE, "floor") if name not in plan.candidates]
    if missing:
        raise BenchError(f"a chart needs {' and '.join(missing)} in --candidates too")


def _show(sample: measure.Sample) -> None:
    taken = sample.error or f"{sample.seconds:.4f} s"
    click.echo(f"{sample.workload:22}{sample.candidate:22}{taken}", err=True)


def _write(result: report.Document, to: Path | None, picture: Path | None) -> None:
    """Print *result* as tables. Write it to the file *to* and draw it in the file *picture*, unless they are None."""
    if to is not None:
        to.write_text(json.dumps(result, indent=1) + "\n")
    click.echo(report.tables(result))
    if picture is not None:
        _draw(result, picture)


def _draw(result: report.Document, picture: Path) -> None:
    # Matplotlib takes half a second to import and much memory. A run that measures must have neither.
    from bench import chart  # noqa: PLC0415

    picture.write_bytes(chart.svg(result))


def _read(file: Path) -> report.Document:
    """Return the report in *file*. Raises BenchError."""
    try:
        return dict(json.loads(file.read_text()))
    except ValueError as error:
        raise BenchError(f"{file} is no JSON: {error}") from None


@main.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def table(file: Path) -> None:
    """Print the tables of FILE, a report that --json wrote, as Markdown."""
    click.echo(report.tables(_read(file)))


@main.command(name="chart")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("picture", type=click.Path(path_type=Path, dir_okay=False))
def draw_chart(file: Path, picture: Path) -> None:
    """Draw FILE, a report that --json wrote, as bars in the SVG file PICTURE."""
    _check_matplotlib()
    _draw(_read(file), picture)


@main.command(name="counts")
@click.option("--count", type=click.IntRange(min=1), default=200, show_default=True, help="Operations of each kind.")
@click.option("--files", type=click.IntRange(min=1), default=100_000, show_default=True, help="Files held in memory.")
@click.option("--mebibytes", type=click.IntRange(min=1), default=512, show_default=True, help="Content held in memory.")
@_directory
def print_counts(count: int, files: int, mebibytes: int, directory: Path | None) -> None:
    """Count requests, commits, bytes and memory, instead of time."""
    with _temporary_directory(directory) as base:
        click.echo(counts.operations(base, count) + "\n")
        click.echo(counts.memory(base, files, mebibytes))


@main.command(name="calls")
@click.option("--trace", metavar="REQUEST", help="List the functions that this request calls, as in 'write 100 bytes'.")
@_directory
def print_calls(trace: str | None, directory: Path | None) -> None:
    """Count the functions and files of vfsd that a request goes through, instead of time."""
    with _temporary_directory(directory) as base:
        click.echo(calls.table(base) if trace is None else calls.listing(trace))


@main.command(name="memory")
@click.option("--mebibytes", type=click.IntRange(min=1), default=256, show_default=True, help="Size of the large file.")
@click.option("--files", type=click.IntRange(min=1), default=50_000, show_default=True, help="Number of small files.")
@click.option("--wait", type=click.FloatRange(min=0), default=8.0, show_default=True, help="Seconds after each step.")
@_against
@_directory
def print_memory(mebibytes: int, files: int, wait: float, against: Path | None, directory: Path | None) -> None:
    """Measure the daemon's memory while content comes and goes."""
    if against is not None:
        check_checkout(against)
    with _temporary_directory(directory) as base:
        click.echo(memory.table(base, memory.steps_of(mebibytes, files), wait, against))


@main.command(name="growth")
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), default=1.0, help="Multiply every size.")
@_directory
def print_growth(scale: float, directory: Path | None) -> None:
    """Measure the time for one unit of work at two sizes, and print their ratio."""
    with _temporary_directory(directory) as base:
        click.echo(growth.table(base, scale, lambda row: click.echo(row, err=True)))


def run() -> None:
    """Run the command line. Print an error as one line."""
    try:
        main(prog_name="python -m bench")
    except (BenchError, OSError) as error:
        click.echo(f"bench: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    run()
