"""From the command to a mount that answers: with nothing, with many files, with much content. The figure is seconds.

Only for what outlives its mount. Beside it, without a file system: the imports alone, and the same keys read from Redis
in the plainest way.
"""

import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import process
from bench.bare_redis import RedisConnection, TransactionRecorder
from bench.workloads.base import SECONDS, Target, TimedCall, Workload
from bench.workloads.large import write_file
from bench.workloads.small import make_empty_files
from vfsd.store.redis.resp import Reply, RespRequest

_LASTING = frozenset({"vfsd-redis", "vfsd-redis-tcp", "vfsd-sqlite", "juicefs"})
_AT_ONCE = 16
_SIZE = struct.Struct("<24xQ")
"""Where an inode record has the size of the file (docs/format.md)."""


def _starting(fill: Callable[[Target, Path], None]) -> Callable[[Target], TimedCall]:
    """Return a workload's preparation: mounting again what *fill* has filled."""

    def prepare(target: Target) -> TimedCall:
        target.once("lasting", lambda directory: fill(target, directory))
        target.candidate.unmount()
        return target.candidate.mount

    return prepare


def _fill_with_content(target: Target, directory: Path) -> None:
    for name in range(target.size):
        write_file(target, directory / f"f{name}", 1)


def _imports(connection: RedisConnection, size: int) -> TimedCall:
    command = [sys.executable, "-c", "import click, trio, redis, pyfuse3"]
    process.run(command)
    return lambda: process.run(command)


def _scanning(content: bytes) -> Callable[[RedisConnection, int], TimedCall]:
    """Return a bare workload's preparation: reading a scope of files that hold *content*."""

    def prepare(connection: RedisConnection, size: int) -> TimedCall:
        if connection.ask(b"HLEN", connection.keys.inodes) < size:
            recorder = TransactionRecorder(connection.keys)
            for name in range(size):
                ino = recorder.create(b"f%d" % name)
                if content:
                    recorder.write(ino, 0, content)
            connection.call_all(recorder.requests)
        return lambda: _scan(connection)

    return prepare


def _scan(connection: RedisConnection) -> None:
    """Read inodes and entries by HSCAN, content by HGETALL, some at a time."""
    records = dict(_pairs(connection, connection.keys.inodes))
    dict(_pairs(connection, connection.keys.entries))
    with_content = [int(ino) for ino, record in records.items() if _SIZE.unpack_from(record)[0]]
    for start in range(0, len(with_content), _AT_ONCE):
        request = RespRequest()
        for ino in with_content[start : start + _AT_ONCE]:
            request.add(b"HGETALL", connection.keys.data(ino))
        connection.call(request)


def _pairs(connection: RedisConnection, key: bytes) -> Iterator[tuple[Reply, Reply]]:
    cursor = b"0"
    while True:
        cursor, found = connection.ask(b"HSCAN", key, cursor, b"COUNT", b"1000")
        yield from zip(found[::2], found[1::2], strict=True)
        if cursor == b"0":
            return


_with_files = _starting(lambda target, directory: make_empty_files(directory, target.size))

START = (
    Workload("mount-empty", "mount nothing", 0, SECONDS, _with_files, _imports, only=_LASTING),
    Workload("mount-files", "mount empty files", 10_000, SECONDS, _with_files, _scanning(b""), only=_LASTING),
    Workload("mount-many-files", "mount empty files", 100_000, SECONDS, _with_files, _scanning(b""), only=_LASTING),
    Workload(
        "mount-content",
        "mount files of 1 MiB",
        512,
        SECONDS,
        _starting(_fill_with_content),
        _scanning(bytes(range(1, 256)) * 4112 + bytes(range(1, 17))),
        only=_LASTING,
    ),
)
