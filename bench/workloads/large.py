"""Large files: from end to end, and here and there. The size is MiB, or operations within 64 MiB."""

import os
import random
from collections.abc import Callable
from pathlib import Path

from bench.wire import Recorder, Wire
from bench.workloads.base import Go, Stage, Workload, opened

_MIB = 1 << 20
_BLOCK = os.urandom(_MIB)
_PAGE = os.urandom(4096)
_FIELD_MIB = 64
_SEED = 7
"""Every candidate and round meets the same offsets."""


def write_file(stage: Stage, path: Path, mebibytes: int) -> None:
    """Write *mebibytes* in pieces of 1 MiB."""
    with opened(path, os.O_CREAT | os.O_WRONLY) as fd:
        for _ in range(mebibytes):
            os.write(fd, _BLOCK)
            stage.store(fd)


def read_file(path: Path) -> None:
    """Read a file from end to end in pieces of 1 MiB, into the same memory: new memory would cost as much again."""
    piece = bytearray(_MIB)
    with opened(path, os.O_RDONLY) as fd:
        while os.readv(fd, [piece]):
            pass


def _write(stage: Stage) -> Go:
    return lambda: write_file(stage, stage.directory / "file", stage.size)


def _file(stage: Stage, mebibytes: int) -> Path:
    return stage.once("large", lambda directory: write_file(stage, directory / "file", mebibytes)) / "file"


def _read_cold(stage: Stage) -> Go:
    path = _file(stage, stage.size)
    stage.chill()
    return lambda: read_file(path)


def _read_warm(stage: Stage) -> Go:
    path = _file(stage, stage.size)
    read_file(path)
    return lambda: read_file(path)


def _offsets(count: int) -> list[int]:
    chance = random.Random(_SEED)
    return [4096 * chance.randrange(_FIELD_MIB * 256) for _ in range(count)]


def _writing(after: Callable[[Stage, int], object]) -> Callable[[Stage], Go]:
    """Return a workload's preparation: writing pages at random, each followed by *after*."""

    def prepare(stage: Stage) -> Go:
        path, offsets = _file(stage, _FIELD_MIB), _offsets(stage.size)

        def go() -> None:
            with opened(path, os.O_WRONLY) as fd:
                for offset in offsets:
                    os.pwrite(fd, _PAGE, offset)
                    after(stage, fd)

        return go

    return prepare


def _random_read(stage: Stage) -> Go:
    path, offsets = _file(stage, _FIELD_MIB), _offsets(stage.size)
    stage.chill()

    def go() -> None:
        with opened(path, os.O_RDONLY) as fd:
            for offset in offsets:
                os.pread(fd, len(_PAGE), offset)

    return go


def _bare_write(wire: Wire, size: int) -> Go:
    recorder = Recorder(wire.keys)
    file = recorder.create(b"file")
    for piece in range(size):
        recorder.write(file, piece * _MIB, _BLOCK)
    wire.empty()
    return lambda: wire.call_all(recorder.requests)


LARGE = (
    Workload("write", "a file from end to end, 1 MiB at a time", 256, "MiB", _write, _bare_write, buffers=True),
    Workload("read-large-cold", "the same read, nothing cached", 256, "MiB", _read_cold),
    Workload("read-large-warm", "the same, just read before", 256, "MiB", _read_warm),
    Workload(
        "random-write",
        "4 KiB at random in 64 MiB",
        2000,
        "writes",
        _writing(lambda stage, fd: stage.store(fd)),
        buffers=True,
    ),
    Workload("random-write-fsync", "the same, and fsync each", 1000, "writes", _writing(lambda _, fd: os.fsync(fd))),
    Workload("random-read", "4 KiB at random in 64 MiB, nothing cached", 2000, "reads", _random_read),
)
