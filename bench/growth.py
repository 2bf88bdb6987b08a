"""Growth: the time for one unit of work at two sizes, and their ratio. It shows what grows worse than its work.

A ratio near 1 is flat. A ratio near that of the sizes is a unit that costs as much as all there is: quadratic as a
whole. Each figure is the shortest of a few runs, because other load on the machine makes a run longer and never
shorter.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias
from unittest import mock

import redis
import trio

from bench.candidates import Vfsd, mounted
from bench.factory import redis_server
from bench.process import BenchError
from bench.report import markdown, short
from bench.workloads.small import make_empty_files
from vfsd import connect
from vfsd.scope.hydrate import hydrate
from vfsd.store.base import ClaimTerms, StoreOptions
from vfsd.store.memory import MemoryStore
from vfsd.store.owner import this_process
from vfsd.store.url import open_store
from vfsd.tree.change import ROOT, Attributes, Change, Op, PutEntry, PutInode

FACTOR = 10
"""The larger size divided by the smaller."""

_RUNS = 3
_UNITS = 200
"""Units of one run, if a unit is one operation among many files."""
_SCOPE = "growth"
_SKILL = "---\nname: {0}\ndescription: a skill\n---\nText.\n"
_SEED = f"""
import sys
from vfsd import connect
with connect(sys.argv[1]) as vfs:
    for number in range(int(sys.argv[2])):
        vfs.seed_skill(f"skills/s{{number}}", {_SKILL!r}.format(f"s{{number}}"))
"""

_LIST_ALL = "import sys; from vfsd import connect; connect(sys.argv[1]).list_all_paths()"
_WAIT = "longest wait"

_Run: TypeAlias = Callable[[], int]
"""Does some units of work, other ones each time, and returns how many."""


class _Row(NamedTuple):
    """Work at the sizes *small* and FACTOR times *small*, on Redis or SQLite. *prepare* is not timed.

    The run of a row with *waits* is not timed either: it returns how long (µs) somebody else had to wait at most.
    """

    name: str
    unit: str
    small: int
    prepare: Callable[[Vfsd, int], _Run]
    on_sqlite: bool = False
    waits: bool = False


# --- names in one directory


def _full(vfsd: Vfsd, size: int) -> Path:
    """Return a directory with *size* empty files. Nothing of it is cached by the kernel."""
    directory = vfsd.mountpoint / "full"
    directory.mkdir()
    make_empty_files(directory, size)
    vfsd.unmount()
    vfsd.mount()
    vfsd.wait_until_started()
    return directory


def _each(operation: Callable[[int], object], most: int) -> _Run:
    """Return a run of *operation* with further numbers each time, as many in all runs as *most* allows."""
    numbers, units = count(), max(1, min(_UNITS, most // _RUNS))

    def run() -> int:
        for _ in range(units):
            operation(next(numbers))
        return units

    return run


def _listing(vfsd: Vfsd, size: int) -> _Run:
    directory = _full(vfsd, size)
    return lambda: len(os.listdir(directory))


def _creating(vfsd: Vfsd, size: int) -> _Run:
    directory = _full(vfsd, size)
    return _each(lambda number: os.mknod(directory / f"new{number}", 0o644), size)


def _looking_up(vfsd: Vfsd, size: int) -> _Run:
    directory = _full(vfsd, size)
    return _each(lambda number: os.stat(directory / f"f{number}"), size)


def _unlinking(vfsd: Vfsd, size: int) -> _Run:
    directory = _full(vfsd, size)
    return _each(lambda number: os.unlink(directory / f"f{number}"), size)


def _renaming(directory: Path) -> _Run:
    names = (directory, directory.with_name("renamed"))
    return _each(lambda number: os.rename(names[number % 2], names[1 - number % 2]), _RUNS * _UNITS)


def _renaming_full(vfsd: Vfsd, size: int) -> _Run:
    return _renaming(_full(vfsd, size))


# --- skills


def _make_skill(skills: Path, name: str) -> None:
    (skills / name).mkdir()
    (skills / name / "SKILL.md").write_text(_SKILL.format(name))


def _stored_skills(vfsd: Vfsd, size: int) -> Path:
    skills = vfsd.mountpoint / "skills"
    skills.mkdir()
    for number in range(size):
        _make_skill(skills, f"s{number}")
    return skills


def _making_skills(vfsd: Vfsd, size: int) -> _Run:
    skills = _stored_skills(vfsd, size)
    return _each(lambda number: _make_skill(skills, f"new{number}"), size)


def _renaming_beside_stored(vfsd: Vfsd, size: int) -> _Run:
    _stored_skills(vfsd, size)
    directory = vfsd.mountpoint / "skills" / "directory"
    directory.mkdir()
    return _renaming(directory)


def _seed_skills(vfsd: Vfsd, size: int) -> None:
    command = [sys.executable, "-c", _SEED, str(vfsd.mountpoint), str(size)]
    done = subprocess.run(command, env=vfsd.environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"cannot seed skills: {done.stderr.strip().splitlines()[-1]}")


def _renaming_beside_seeded(vfsd: Vfsd, size: int) -> _Run:
    _seed_skills(vfsd, size)
    directory = vfsd.mountpoint / "directory"
    directory.mkdir()
    return _renaming(directory)


def _missing_at_the_root(vfsd: Vfsd, size: int) -> _Run:
    _seed_skills(vfsd, size)
    return _each(lambda number: (vfsd.mountpoint / f"missing{number}").exists(), _RUNS * _UNITS)


# --- large files, and the whole tree


def _large_files(vfsd: Vfsd, size: int) -> list[Path]:
    """Return as many files of *size* MiB as there are runs."""
    piece = bytes(range(1, 256)) * 4112 + bytes(range(1, 17))
    files = [vfsd.mountpoint / f"large{number}" for number in range(_RUNS)]
    for file in files:
        with file.open("wb") as opened:
            for _ in range(size):
                opened.write(piece)
    return files


def _once_each(files: list[Path], operation: Callable[[Path], object]) -> _Run:
    left = iter(files)

    def run() -> int:
        operation(next(left))
        return 1

    return run


def _halving(vfsd: Vfsd, size: int) -> _Run:
    return _once_each(_large_files(vfsd, size), lambda file: os.truncate(file, size << 19))


def _removing(vfsd: Vfsd, size: int) -> _Run:
    return _once_each(_large_files(vfsd, size), os.unlink)


def _listing_all(vfsd: Vfsd, size: int) -> _Run:
    _full(vfsd, size)
    with mock.patch.dict(os.environ, vfsd.environment):  # it says where the control socket is
        client = connect(vfsd.mountpoint)
    return lambda: len(client.list_all_paths())


# --- how long others wait


def _pinging_beside_destroy(vfsd: Vfsd, size: int) -> _Run:
    client = redis.Redis.from_url(vfsd.store)
    return _beside_destroy(vfsd, size, client.ping)


def _appending_beside_destroy(vfsd: Vfsd, size: int) -> _Run:
    return _beside_destroy(vfsd, size, _appending(vfsd))


def _beside_destroy(vfsd: Vfsd, size: int, call: Callable[[], object]) -> _Run:
    """Return a run that destroys a scope of *size* files in the same store, and measures *call* meanwhile."""
    for number in range(_RUNS):
        trio.run(_store_files, vfsd.store, f"{_SCOPE}{number}", size)
    command = [sys.executable, "-m", "vfsd", "destroy", "--yes", "--store", vfsd.store]
    commands = iter([[*command, f"{_SCOPE}{number}"] for number in range(_RUNS)])
    return lambda: _longest_beside(vfsd, next(commands), call)


def _looking_up_beside_listing(vfsd: Vfsd, size: int) -> _Run:
    directory, numbers = _full(vfsd, size), count()
    command = [sys.executable, "-c", _LIST_ALL, str(vfsd.mountpoint)]
    return lambda: _longest_beside(vfsd, command, lambda: os.path.exists(directory / f"missing{next(numbers)}"))


def _appending_beside_new_files(vfsd: Vfsd, size: int) -> _Run:
    """Files that are made after the mount are what the collector of cycles would look at."""
    directory = vfsd.mountpoint / "new"
    directory.mkdir()
    make_empty_files(directory, size)
    append = _appending(vfsd)
    return lambda: max(_waited(append) for _ in range(10 * _UNITS))


def _appending(vfsd: Vfsd) -> Callable[[], object]:
    """Return what appends a line to a log, which stays open as long as this program runs."""
    log = os.open(vfsd.mountpoint / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    return lambda: os.write(log, b"line")


def _longest_beside(vfsd: Vfsd, command: list[str], call: Callable[[], object]) -> int:
    """Call *call* again and again while *command* runs. Return how long (µs) the slowest call took."""
    longest = 0
    with subprocess.Popen(command, env=vfsd.environment, stdout=subprocess.DEVNULL) as running:
        while running.poll() is None:
            longest = max(longest, _waited(call))
    if running.returncode:
        raise BenchError(f"{' '.join(command[2:5])} failed")
    return longest


def _waited(call: Callable[[], object]) -> int:
    started = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - started) // 1000


async def _store_files(url: str, scope: str, size: int) -> None:
    """Store a scope with *size* empty files, a thousand in each commit."""
    store = open_store(url, StoreOptions())
    claim = await store.claim(scope, this_process("/nowhere"), ClaimTerms())
    ops = _files(size)
    for start in range(0, len(ops), 2000):
        await claim.commit(Change(tuple(ops[start : start + 2000]), grows=True))
    await claim.release()
    await store.aclose()


# --- hydration, without a mount: its start would hide the rest


def _hydrating(ops: list[Op]) -> _Run:
    """Return a run that loads a scope of *ops*, one of them a unit."""
    store = MemoryStore()

    async def store_all() -> None:
        claim = await store.claim(_SCOPE, this_process("/nowhere"), ClaimTerms())
        await claim.commit(Change(tuple(ops), grows=True))

    async def load() -> None:
        await hydrate(store, _SCOPE, lambda _done, _total: None)

    def run() -> int:
        trio.run(load)
        return len(ops)

    trio.run(store_all)
    return run


def _inode(ino: int, mode: int, nlink: int) -> PutInode:
    return PutInode(ino, Attributes(mode, nlink, 0, 0, 0, 0, 0, 0, 0))


def _hydrating_files(_vfsd: Vfsd, size: int) -> _Run:
    return _hydrating(_files(size))


def _files(size: int) -> list[Op]:
    """Return the operations that make a root directory with *size* empty files."""
    ops: list[Op] = [_inode(ROOT, 0o40755, 2)]
    for number in range(size):
        ino = ROOT + 1 + number
        ops += [_inode(ino, 0o100644, 1), PutEntry(ROOT, b"f%d" % number, ino, 3 + number)]
    return ops


def _hydrating_links(_vfsd: Vfsd, size: int) -> _Run:
    file = ROOT + 1
    ops: list[Op] = [_inode(ROOT, 0o40755, 2), _inode(file, 0o100644, size)]
    ops += [PutEntry(ROOT, b"f%d" % number, file, 3 + number) for number in range(size)]
    return _hydrating(ops)


_ROWS = (
    _Row("list a directory of SIZE files", "entry", 2000, _listing),
    _Row("create in a directory of SIZE files", "file", 2000, _creating),
    _Row("look up in a directory of SIZE files", "name", 2000, _looking_up),
    _Row("remove from a directory of SIZE files", "file", 2000, _unlinking),
    _Row("rename a directory of SIZE files", "rename", 2000, _renaming_full),
    _Row("make a skill beside SIZE stored skills", "skill", 200, _making_skills),
    _Row("rename a directory beside SIZE stored skills", "rename", 200, _renaming_beside_stored),
    _Row("rename a directory beside SIZE seeded skills", "rename", 200, _renaming_beside_seeded),
    _Row("a name that is missing at the root, SIZE seeded skills", "name", 200, _missing_at_the_root),
    _Row("cut a file of SIZE MiB in half", "call", 16, _halving),
    _Row("remove a file of SIZE MiB", "call", 16, _removing),
    _Row("cut a file of SIZE MiB in half, on SQLite", "call", 16, _halving, on_sqlite=True),
    _Row("remove a file of SIZE MiB, on SQLite", "call", 16, _removing, on_sqlite=True),
    _Row("ask Redis while a scope of SIZE files is destroyed", _WAIT, 5000, _pinging_beside_destroy, waits=True),
    _Row(
        "append on SQLite while another scope of SIZE files is destroyed",
        _WAIT,
        5000,
        _appending_beside_destroy,
        on_sqlite=True,
        waits=True,
    ),
    _Row("look up while SIZE files are named by the socket", _WAIT, 5000, _looking_up_beside_listing, waits=True),
    _Row("append beside SIZE files made after the mount", _WAIT, 5000, _appending_beside_new_files, waits=True),
    _Row("name all of SIZE files by the control socket", "file", 2000, _listing_all),
    _Row("load SIZE files", "record", 5000, _hydrating_files),
    _Row("load SIZE hard links of one file", "record", 5000, _hydrating_links),
)


@contextmanager
def _empty_mount(base: Path, *, on_sqlite: bool) -> Iterator[Vfsd]:
    """Give a mounted empty scope on a store of its own."""
    base.mkdir()
    with redis_server() as server:
        vfsd = Vfsd(base, f"sqlite:{base}/store.db" if on_sqlite else server.url)
        with mounted(vfsd):
            vfsd.wait_until_started()
            yield vfsd


def _microseconds(base: Path, row: _Row, size: int) -> float:
    """Return the time for one unit of *row* at *size*: the shortest of some runs."""
    with _empty_mount(base, on_sqlite=row.on_sqlite) as vfsd:
        run = row.prepare(vfsd, size)
        return min(run() if row.waits else _timed(run) * 1e6 for _ in range(_RUNS))


def _timed(run: _Run) -> float:
    """Return the seconds for each unit of *run*."""
    started = time.perf_counter()
    units = run()
    return (time.perf_counter() - started) / units


def table(base: Path, scale: float, show: Callable[[str], object]) -> str:
    """Return the table of all rows, with their sizes multiplied by *scale*. *show* gets each row when it is known."""
    rows = []
    for number, row in enumerate(_ROWS):
        small = max(1, round(row.small * scale))
        sizes = (small, small * FACTOR)
        times = [_microseconds(base / f"{number}-{size}", row, size) for size in sizes]
        figures = [*(f"{size:,}" for size in sizes), *map(short, times), f"{times[1] / times[0]:.2f}"]
        rows.append([f"{row.name}, µs for each {row.unit}", *figures])
        show(" ".join(rows[-1]))
    return markdown(["work", "SIZE 1", "SIZE 2", "at SIZE 1", "at SIZE 2", "ratio"], rows)
