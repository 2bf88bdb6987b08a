"""Large files: sequential and random access. The size is in MiB, or a number of operations on a file of 64 MiB."""

import os
import random
from collections.abc import Callable
from pathlib import Path

from bench.bare_redis import RedisConnection, TransactionRecorder
from bench.workloads.base import Target, TimedCall, Workload, opened

_MIB = 1 << 20
_BLOCK = os.urandom(_MIB)
_PAGE = os.urandom(4096)
_RANDOM_FILE_MIB = 64
_SEED = 7
"""The offsets are the same for all candidates and all rounds."""


def write_file(target: Target, path: Path, mebibytes: int) -> None:
    """Write a file of *mebibytes* MiB, 1 MiB at a time."""
    with opened(path, os.O_CREAT | os.O_WRONLY) as fd:
        for _ in range(mebibytes):
            os.write(fd, _BLOCK)
            target.store(fd)


def read_file(path: Path) -> None:
    """Read a file, 1 MiB at a time, into one buffer. A new buffer for each read would double the time."""
    piece = bytearray(_MIB)
    with opened(path, os.O_RDONLY) as fd:
        while os.readv(fd, [piece]):
            pass


def _write(target: Target) -> TimedCall:
    return lambda: write_file(target, target.directory / "file", target.size)


def _file(target: Target, mebibytes: int) -> Path:
    return target.once("large", lambda directory: write_file(target, directory / "file", mebibytes)) / "file"


def _read_cold(target: Target) -> TimedCall:
    path = _file(target, target.size)
    target.make_cold()
    return lambda: read_file(path)


def _read_warm(target: Target) -> TimedCall:
    path = _file(target, target.size)
    read_file(path)
    return lambda: read_file(path)


def _offsets(count: int) -> list[int]:
    rng = random.Random(_SEED)
    return [4096 * rng.randrange(_RANDOM_FILE_MIB * 256) for _ in range(count)]


def _writing(after: Callable[[Target, int], object]) -> Callable[[Target], TimedCall]:
    """Return the ``prepare`` of a workload that writes pages at random offsets, and calls *after* after each page."""

    def prepare(target: Target) -> TimedCall:
        path, offsets = _file(target, _RANDOM_FILE_MIB), _offsets(target.size)

        def timed() -> None:
            with opened(path, os.O_WRONLY) as fd:
                for offset in offsets:
                    os.pwrite(fd, _PAGE, offset)
                    after(target, fd)

        return timed

    return prepare


def _random_read(target: Target) -> TimedCall:
    path, offsets = _file(target, _RANDOM_FILE_MIB), _offsets(target.size)
    target.make_cold()

    def timed() -> None:
        with opened(path, os.O_RDONLY) as fd:
            for offset in offsets:
                os.pread(fd, len(_PAGE), offset)

    return timed


def _bare_write(connection: RedisConnection, size: int) -> TimedCall:
    recorder = TransactionRecorder(connection.keys)
    file = recorder.create(b"file")
    for piece in range(size):
        recorder.write(file, piece * _MIB, _BLOCK)
    connection.empty()
    return lambda: connection.call_all(recorder.requests)


LARGE = (
    Workload("write", "write a large file, 1 MiB at a time", 256, "MiB", _write, _bare_write, buffers=True),
    Workload("read-large-cold", "read a large file: nothing is cached", 256, "MiB", _read_cold),
    Workload("read-large-warm", "read a large file: read just before", 256, "MiB", _read_warm),
    Workload(
        "random-write",
        "write 4 KiB at random offsets in 64 MiB",
        2000,
        "writes",
        _writing(lambda target, fd: target.store(fd)),
        buffers=True,
    ),
    Workload(
        "random-write-fsync",
        "write 4 KiB at random offsets, then fsync",
        1000,
        "writes",
        _writing(lambda _, fd: os.fsync(fd)),
    ),
    Workload("random-read", "read 4 KiB at random offsets: nothing is cached", 2000, "reads", _random_read),
)
