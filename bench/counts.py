"""The cost of an operation in requests, commits and bytes, and the cost of a file in memory: counted, not timed.

The requests of the kernel come from the trace that ``vfsd mount --debug`` logs. Commits and bytes come from the
statistics of the Redis server. The lease and the requests for these statistics also send bytes. They are measured
separately and subtracted.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import redis

from bench import process
from bench.candidates import Vfsd, mounted
from bench.factory import redis_server
from bench.report import markdown
from bench.workloads.base import opened
from bench.workloads.small import CONTENT, LINE, make_empty_files

_REQUEST = re.compile(r" DEBUG vfsd\.fuse\.trace: (\w+)")
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY
_LOG = os.O_CREAT | os.O_APPEND | os.O_WRONLY
_MIB = 1 << 20


class _Counters(NamedTuple):
    """Totals: requests of the kernel by name, transactions, and bytes that the server received."""

    requests: Counter[str]
    commits: int
    received: int


@dataclass
class _Mount:
    """A mounted scope, and a client of the Redis server that stores it."""

    vfsd: Vfsd
    client: redis.Redis

    @property
    def root(self) -> Path:
        """The mountpoint."""
        return self.vfsd.mountpoint

    @property
    def resident(self) -> int:
        """The bytes of the daemon that are in RAM."""
        return max(map(process.resident_bytes, process.processes_of(self.root)))

    def remount(self) -> None:
        """Mount again, so that the memory holds only what hydration loads from the store."""
        self.vfsd.unmount()
        self.vfsd.mount()
        self.vfsd.wait_until_started()

    def counters(self) -> _Counters:
        """Return the totals when the daemon is idle."""
        process.wait_until_idle(process.processes_of(self.root))
        stats = self.client.info("commandstats")
        requests = Counter(_REQUEST.findall(self.vfsd.log.read_text()))
        return _Counters(requests, stats.get("cmdstat_exec", {"calls": 0})["calls"], self._received())

    def _received(self) -> int:
        return int(self.client.info("stats")["total_net_input_bytes"])

    def cost(self, call: Callable[[], object]) -> _Counters:
        """Return what *call* adds to the totals."""
        before = self.counters()
        idle = self.counters()
        call()
        after = self.counters()
        statistics = idle.received - before.received
        return _Counters(
            after.requests - idle.requests, after.commits - idle.commits, after.received - idle.received - statistics
        )


@contextmanager
def _mounted(base: Path, *options: str) -> Iterator[_Mount]:
    """Give an empty scope that is mounted with *options*."""
    base.mkdir()
    with ExitStack() as stack:
        server = stack.enter_context(redis_server())
        vfsd = Vfsd(base, server.url, *options)
        stack.enter_context(mounted(vfsd))
        vfsd.wait_until_started()
        yield _Mount(vfsd, stack.enter_context(server.client()))


# --- operations


class _Operation(NamedTuple):
    """An operation that is counted.

    *before* prepares a directory for a number of operations. *each* does the operation with a given number. One
    operation writes *content* bytes.
    """

    name: str
    content: int
    before: Callable[[Path, int], object]
    each: Callable[[Path, int], object]


def _put(path: Path, flags: int, content: bytes) -> None:
    with opened(path, flags) as fd:
        os.write(fd, content)


def _nothing(place: Path, count: int) -> None:
    """Prepare nothing."""


def _files(place: Path, count: int) -> None:
    for number in range(count):
        _put(place / f"f{number}", _NEW, CONTENT)


def _replace(place: Path, number: int) -> None:
    _put(place / "file.tmp", _NEW, CONTENT)
    (place / "file.tmp").rename(place / "file")


_OPERATIONS = (
    _Operation("create, 4 KiB", len(CONTENT), _nothing, lambda at, n: _put(at / f"f{n}", _NEW, CONTENT)),
    _Operation("write to temporary, rename", len(CONTENT), _nothing, _replace),
    _Operation(
        "rewrite (O_TRUNC), 4 KiB",
        len(CONTENT),
        _files,
        lambda at, n: _put(at / f"f{n}", os.O_WRONLY | os.O_TRUNC, CONTENT),
    ),
    _Operation("open, append 200 bytes, close", len(LINE), _nothing, lambda at, _: _put(at / "log", _LOG, LINE)),
    _Operation("mkdir", 0, _nothing, lambda at, n: (at / f"d{n}").mkdir()),
    _Operation("unlink", 0, _files, lambda at, n: (at / f"f{n}").unlink()),
)


def _append(path: Path, count: int) -> None:
    """Append *count* lines to a log that stays open."""
    with opened(path, _LOG) as fd:
        for _ in range(count):
            os.write(fd, LINE)


def _row(name: str, counters: _Counters, count: int, content: int) -> list[str]:
    """Return a row of the table: *counters* divided by *count*. One operation writes *content* bytes."""
    requests = ", ".join(
        f"{kind} {number / count:.3g}" for kind, number in counters.requests.most_common() if number * 20 > count
    )
    each = counters.received / count
    per_byte = f"{each / content:.3g}" if content else ""
    return [name, requests, f"{counters.commits / count:.3g}", f"{each:,.0f}", per_byte]


def operations(base: Path, count: int) -> str:
    """Return a table with the cost of each operation: the average of *count* operations."""
    rows = []
    with _mounted(base / "counts", "--debug") as mount:
        for number, operation in enumerate(_OPERATIONS):
            place = mount.root / str(number)
            place.mkdir()
            operation.before(place, count)
            cost = mount.cost(lambda at=place, of=operation: [of.each(at, n) for n in range(count)])  # type: ignore[misc]
            rows.append(_row(operation.name, cost, count, operation.content))
        cost = mount.cost(lambda: _append(mount.root / "log", count))
        rows.append(_row("append 200 bytes to an open log", cost, count, len(LINE)))
        rows.append(_row("the same, to a log of 64 MiB", _large_log(mount, count), count, len(LINE)))
    return markdown(["operation", "requests", "commits", "bytes to Redis", "per byte written"], rows)


def _large_log(mount: _Mount, count: int) -> _Counters:
    path = mount.root / "large"
    with opened(path, _LOG) as fd:
        for _ in range(64):
            os.write(fd, os.urandom(_MIB))
    return mount.cost(lambda: _append(path, count))


# --- memory


def memory(base: Path, files: int, mebibytes: int) -> str:
    """Return a table with the memory of *files* empty files and of *mebibytes* MiB of content after a mount."""
    with _mounted(base / "empty") as mount:
        mount.remount()
        empty = mount.resident
        make_empty_files(mount.root, files)
        mount.remount()
        each = (mount.resident - empty) / files
    with _mounted(base / "full") as mount:
        for number in range(mebibytes):
            _put(mount.root / f"f{number}", _NEW, os.urandom(_MIB))
        mount.remount()
        full = mount.resident
    rows = [
        ["daemon of an empty scope", f"{empty / _MIB:.1f} MiB"],
        [f"each of {files:,} empty files", f"{each:,.0f} bytes"],
        [f"daemon with {mebibytes:,} MiB of content, as a multiple of that", f"{full / _MIB / mebibytes:.3g}"],
    ]
    return markdown(["resident memory", ""], rows)
