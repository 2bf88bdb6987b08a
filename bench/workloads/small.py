"""Small files and names: what agents, editors and shells do most."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.wire import Recorder, Wire
from bench.workloads.base import Go, Stage, Workload, opened
from bench.workloads.crew import crew

CONTENT = os.urandom(4096)
LINE = b"x" * 199 + b"\n"
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY
_LOG = os.O_CREAT | os.O_APPEND | os.O_WRONLY


def make_files(stage: Stage, directory: Path, names: range) -> None:
    """Make a 4 KiB file for each of *names*."""
    for name in names:
        with opened(directory / f"f{name}", _NEW) as fd:
            os.write(fd, CONTENT)
            stage.store(fd)


def mark(directory: Path, count: int) -> None:
    """Make *count* empty files, in the cheapest way there is."""
    for name in range(count):
        os.mknod(directory / f"f{name}", 0o644)


def read_all(directory: Path, count: int) -> None:
    """Read what :func:`make_files` made."""
    for name in range(count):
        with opened(directory / f"f{name}", os.O_RDONLY) as fd:
            os.read(fd, len(CONTENT))


def _create(stage: Stage) -> Go:
    return lambda: make_files(stage, stage.directory, range(stage.size))


def _create_by_four(stage: Stage) -> Go:
    shares = [range(first, stage.size, 4) for first in range(4)]
    return crew([partial(make_files, stage, stage.directory, share) for share in shares])


def _files(stage: Stage) -> Path:
    return stage.once("files", lambda directory: make_files(stage, directory, range(stage.size)))


def _read_cold(stage: Stage) -> Go:
    files = _files(stage)
    stage.chill()
    return lambda: read_all(files, stage.size)


def _read_warm(stage: Stage) -> Go:
    files = _files(stage)
    read_all(files, stage.size)
    return lambda: read_all(files, stage.size)


def _stat(stage: Stage) -> Go:
    paths = [_files(stage) / f"f{name}" for name in range(stage.size)]

    def go() -> None:
        for path in paths:
            os.stat(path)

    go()
    return go


def _list(stage: Stage) -> Go:
    entries = stage.once("entries", lambda directory: mark(directory, stage.size))
    os.listdir(entries)
    return lambda: os.listdir(entries)


def _list_with_stat(stage: Stage) -> Go:
    entries = stage.once("entries", lambda directory: mark(directory, stage.size))

    def go() -> None:
        with os.scandir(entries) as found:
            for entry in found:
                entry.stat(follow_symlinks=False)

    go()
    return go


def _replace(stage: Stage) -> Go:
    target, temporary = stage.directory / "file", stage.directory / "file.tmp"

    def go() -> None:
        for _ in range(stage.size):
            with opened(temporary, _NEW) as fd:
                os.write(fd, CONTENT)
                stage.store(fd)
            os.rename(temporary, target)

    return go


def _appending(after: Callable[[Stage, int], object]) -> Callable[[Stage], Go]:
    """Return a workload's preparation: appending lines to an open log, each followed by *after*."""

    def prepare(stage: Stage) -> Go:
        def go() -> None:
            with opened(stage.directory / "log", _LOG) as fd:
                for _ in range(stage.size):
                    os.write(fd, LINE)
                    after(stage, fd)

        return go

    return prepare


def _open_append_close(stage: Stage) -> Go:
    def go() -> None:
        for _ in range(stage.size):
            with opened(stage.directory / "log", _LOG) as fd:
                os.write(fd, LINE)
                stage.store(fd)

    return go


def _mkdir(stage: Stage) -> Go:
    def go() -> None:
        for name in range(stage.size):
            os.mkdir(stage.directory / f"d{name}")

    return go


def _unlink(stage: Stage) -> Go:
    make_files(stage, stage.directory, range(stage.size))

    def go() -> None:
        for name in range(stage.size):
            os.unlink(stage.directory / f"f{name}")

    return go


def _bare_create(wire: Wire, size: int) -> Go:
    recorder = Recorder(wire.keys)
    for name in range(size):
        recorder.write(recorder.create(b"f%d" % name), 0, CONTENT)
    wire.empty()
    return lambda: wire.call_all(recorder.requests)


def _bare_append(wire: Wire, size: int) -> Go:
    recorder = Recorder(wire.keys)
    log = recorder.create(b"log")
    for line in range(size):
        recorder.write(log, line * len(LINE), LINE)
    wire.empty()
    return lambda: wire.call_all(recorder.requests)


SMALL = (
    Workload("create", "4 KiB files: open, write, close", 2000, "files", _create, _bare_create, buffers=True),
    Workload("create-by-4", "the same by 4 processes at once", 2000, "files", _create_by_four, buffers=True),
    Workload("read-cold", "4 KiB files: open, read, close, nothing cached", 2000, "files", _read_cold),
    Workload("read-warm", "the same, just read before", 2000, "files", _read_warm),
    Workload("stat", "stat of files that were just seen", 2000, "files", _stat),
    Workload("list", "names of one large directory", 10_000, "entries", _list),
    Workload("list-stat", "names and attributes of one large directory", 10_000, "entries", _list_with_stat),
    Workload("replace", "write 4 KiB to a temporary file, rename it over the old", 1000, "files", _replace, None, True),
    Workload(
        "append",
        "append 200 bytes to an open log",
        2000,
        "lines",
        _appending(lambda stage, fd: stage.store(fd)),
        _bare_append,
        buffers=True,
    ),
    Workload("append-fsync", "the same, and fsync each", 1000, "lines", _appending(lambda _, fd: os.fsync(fd))),
    Workload("open-append-close", "append 200 bytes as a shell does", 1000, "lines", _open_append_close, None, True),
    Workload("mkdir", "directories", 1000, "directories", _mkdir),
    Workload("unlink", "unlink 4 KiB files", 1000, "files", _unlink),
)
