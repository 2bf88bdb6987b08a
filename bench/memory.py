"""Memory that goes back: the resident memory of the daemon beside the content that it holds, while that comes and goes.

The rows are one run, on one mount. Each figure is read some seconds after its step, because freed memory goes back
when it has been free for a while.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench import process
from bench.candidates import Vfsd, mounted
from bench.factory import redis_server
from bench.process import BenchError
from bench.report import markdown
from bench.workloads.base import opened

_MIB = 1 << 20
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY
_SETTLE_SECONDS = 8.0
_PER_DIRECTORY = 1000
_SMALL = 1000
"""Bytes of a small file."""
_READ = """
import sys
from vfsd import connect
with connect(sys.argv[1]) as vfs:
    vfs.read_file(sys.argv[2])
"""


class _Step(NamedTuple):
    """One row: what is done, the content held afterwards in bytes, and the call that does it."""

    name: str
    content: int
    do: Callable[[Vfsd], object]


def _write(path: Path, mebibytes: int) -> None:
    with opened(path, _NEW) as fd:
        for _ in range(mebibytes):
            os.write(fd, os.urandom(_MIB))


def _make_small_files(top: Path, files: int) -> None:
    for number in range(files):
        directory = top / str(number // _PER_DIRECTORY)
        if number % _PER_DIRECTORY == 0:
            directory.mkdir(parents=True)
        with opened(directory / str(number), _NEW) as fd:
            os.write(fd, os.urandom(_SMALL))


def _read_by_socket(vfsd: Vfsd, name: str) -> None:
    command = [sys.executable, "-c", _READ, str(vfsd.mountpoint), name]
    done = subprocess.run(command, env=vfsd.environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"cannot read by the socket: {done.stderr.strip().splitlines()[-1]}")


def _steps(mebibytes: int, files: int) -> tuple[_Step, ...]:
    read = max(1, mebibytes // 4)
    return (
        _Step("an empty scope", 0, lambda _vfsd: None),
        _Step("one file of so much written", mebibytes * _MIB, lambda vfsd: _write(vfsd.mountpoint / "f", mebibytes)),
        _Step("removed", 0, lambda vfsd: (vfsd.mountpoint / "f").unlink()),
        _Step(
            f"{files:,} files of {_SMALL:,} bytes written",
            files * _SMALL,
            lambda vfsd: _make_small_files(vfsd.mountpoint / "d", files),
        ),
        _Step("removed with `rm -rf`", 0, lambda vfsd: shutil.rmtree(vfsd.mountpoint / "d")),
        _Step("one file of so much written", read * _MIB, lambda vfsd: _write(vfsd.mountpoint / "f", read)),
        _Step("and read by the control socket", read * _MIB, lambda vfsd: _read_by_socket(vfsd, "f")),
        _Step("removed", 0, lambda vfsd: (vfsd.mountpoint / "f").unlink()),
    )


def _measure(base: Path, checkout: Path, steps: tuple[_Step, ...]) -> list[int]:
    """Return the resident bytes of the vfsd of *checkout* after each of *steps*."""
    base.mkdir()
    with redis_server() as server:
        vfsd = Vfsd(base, server.url, checkout=checkout)
        with mounted(vfsd):
            vfsd.wait_until_started()
            return [_after(vfsd, step) for step in steps]


def _after(vfsd: Vfsd, step: _Step) -> int:
    step.do(vfsd)
    time.sleep(_SETTLE_SECONDS)
    return max(map(process.resident_bytes, process.processes_of(vfsd.mountpoint)))


def table(base: Path, mebibytes: int, files: int, against: Path | None) -> str:
    """Return the table, with a column for the checkout *against* if that is given."""
    steps = _steps(mebibytes, files)
    checkouts = [process.ROOT, *([] if against is None else [against])]
    columns = [_measure(base / str(number), checkout, steps) for number, checkout in enumerate(checkouts)]
    rows = [
        [step.name, f"{step.content / _MIB:,.0f}", *(f"{resident / _MIB:,.0f}" for resident in figures)]
        for step, *figures in zip(steps, *columns, strict=True)
    ]
    return markdown(["after", "content, MiB", "resident, MiB", *["the other checkout"] * (len(columns) - 1)], rows)
