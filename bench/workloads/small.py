"""Small files and names: the operations that agents, editors and shells do most."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.bare_redis import RedisConnection, TransactionRecorder
from bench.workloads.base import Target, TimedCall, Workload, opened
from bench.workloads.parallel import in_parallel

CONTENT = os.urandom(4096)
LINE = b"x" * 199 + b"\n"
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY
_LOG = os.O_CREAT | os.O_APPEND | os.O_WRONLY


def make_files(target: Target, directory: Path, names: range) -> None:
    """Create a file of 4 KiB in *directory* for each of *names*."""
    for name in names:
        with opened(directory / f"f{name}", _NEW) as fd:
            os.write(fd, CONTENT)
            target.store(fd)


def make_empty_files(directory: Path, count: int) -> None:
    """Create *count* empty files in *directory* with mknod, which is the cheapest way."""
    for name in range(count):
        os.mknod(directory / f"f{name}", 0o644)


def read_all(directory: Path, count: int) -> None:
    """Read *count* files that :func:`make_files` created in *directory*."""
    for name in range(count):
        with opened(directory / f"f{name}", os.O_RDONLY) as fd:
            os.read(fd, len(CONTENT))


def _create(target: Target) -> TimedCall:
    return lambda: make_files(target, target.directory, range(target.size))


def _create_by_four(target: Target) -> TimedCall:
    shares = [range(first, target.size, 4) for first in range(4)]
    return in_parallel([partial(make_files, target, target.directory, share) for share in shares])


def _files(target: Target) -> Path:
    return target.once("files", lambda directory: make_files(target, directory, range(target.size)))


def _read_cold(target: Target) -> TimedCall:
    files = _files(target)
    target.make_cold()
    return lambda: read_all(files, target.size)


def _read_warm(target: Target) -> TimedCall:
    files = _files(target)
    read_all(files, target.size)
    return lambda: read_all(files, target.size)


def _stat(target: Target) -> TimedCall:
    paths = [_files(target) / f"f{name}" for name in range(target.size)]

    def timed() -> None:
        for path in paths:
            os.stat(path)

    timed()
    return timed


def _list(target: Target) -> TimedCall:
    entries = target.once("entries", lambda directory: make_empty_files(directory, target.size))
    os.listdir(entries)
    return lambda: os.listdir(entries)


def _list_with_stat(target: Target) -> TimedCall:
    entries = target.once("entries", lambda directory: make_empty_files(directory, target.size))

    def timed() -> None:
        with os.scandir(entries) as found:
            for entry in found:
                entry.stat(follow_symlinks=False)

    timed()
    return timed


def _replace(target: Target) -> TimedCall:
    path, temporary = target.directory / "file", target.directory / "file.tmp"

    def timed() -> None:
        for _ in range(target.size):
            with opened(temporary, _NEW) as fd:
                os.write(fd, CONTENT)
                target.store(fd)
            os.rename(temporary, path)

    return timed


def _appending(after: Callable[[Target, int], object]) -> Callable[[Target], TimedCall]:
    """Return the ``prepare`` of a workload that appends lines to an open log, and calls *after* after each line."""

    def prepare(target: Target) -> TimedCall:
        def timed() -> None:
            with opened(target.directory / "log", _LOG) as fd:
                for _ in range(target.size):
                    os.write(fd, LINE)
                    after(target, fd)

        return timed

    return prepare


def _open_append_close(target: Target) -> TimedCall:
    def timed() -> None:
        for _ in range(target.size):
            with opened(target.directory / "log", _LOG) as fd:
                os.write(fd, LINE)
                target.store(fd)

    return timed


def _mkdir(target: Target) -> TimedCall:
    def timed() -> None:
        for name in range(target.size):
            os.mkdir(target.directory / f"d{name}")

    return timed


def _unlink(target: Target) -> TimedCall:
    make_files(target, target.directory, range(target.size))

    def timed() -> None:
        for name in range(target.size):
            os.unlink(target.directory / f"f{name}")

    return timed


def _bare_create(connection: RedisConnection, size: int) -> TimedCall:
    recorder = TransactionRecorder(connection.keys)
    for name in range(size):
        recorder.write(recorder.create(b"f%d" % name), 0, CONTENT)
    connection.empty()
    return lambda: connection.call_all(recorder.requests)


def _bare_append(connection: RedisConnection, size: int) -> TimedCall:
    recorder = TransactionRecorder(connection.keys)
    log = recorder.create(b"log")
    for line in range(size):
        recorder.write(log, line * len(LINE), LINE)
    connection.empty()
    return lambda: connection.call_all(recorder.requests)


SMALL = (
    Workload("create", "open, write 4 KiB, close: new files", 2000, "files", _create, _bare_create, buffers=True),
    Workload("create-by-4", "the same as create, by 4 processes at once", 2000, "files", _create_by_four, buffers=True),
    Workload("read-cold", "open, read 4 KiB, close: nothing is cached", 2000, "files", _read_cold),
    Workload("read-warm", "open, read 4 KiB, close: read just before", 2000, "files", _read_warm),
    Workload("stat", "stat of files that the kernel knows", 2000, "files", _stat),
    Workload("list", "names of one large directory", 10_000, "entries", _list),
    Workload("list-stat", "names and attributes of one large directory", 10_000, "entries", _list_with_stat),
    Workload("replace", "write 4 KiB to a new file, rename it over the old", 1000, "files", _replace, None, True),
    Workload(
        "append",
        "append 200 bytes to an open log",
        2000,
        "lines",
        _appending(lambda target, fd: target.store(fd)),
        _bare_append,
        buffers=True,
    ),
    Workload(
        "append-fsync",
        "append 200 bytes to an open log, then fsync",
        1000,
        "lines",
        _appending(lambda _, fd: os.fsync(fd)),
    ),
    Workload(
        "open-append-close",
        "open, append 200 bytes, close, as a shell does",
        1000,
        "lines",
        _open_append_close,
        None,
        True,
    ),
    Workload("mkdir", "create directories", 1000, "directories", _mkdir),
    Workload("unlink", "remove files of 4 KiB", 1000, "files", _unlink),
)
