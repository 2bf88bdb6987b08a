"""The time from the command to a mount that answers: an empty scope, many files, much content. In seconds.

Only for candidates whose content remains after an unmount. The candidate hset runs the imports alone, and reads the
same keys from Redis in the simplest way.
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

_PERSISTENT = frozenset({"vfsd-redis", "vfsd-redis-tcp", "vfsd-sqlite", "juicefs"})
_BATCH = 16
_SIZE = struct.Struct("<24xQ")
"""The position of the file size in an inode record (docs/format.md)."""


def _starting(fill: Callable[[Target, Path], None]) -> Callable[[Target], TimedCall]:
    """Return the ``prepare`` of a workload that mounts a scope again after *fill* has filled it."""

    def prepare(target: Target) -> TimedCall:
        target.once("content", lambda directory: fill(target, directory))
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
    """Return the ``bare`` of a workload that reads a scope of files with *content* from Redis."""

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
    """Read inodes and entries with HSCAN, and content with HGETALL, a few keys in each request."""
    records = dict(_pairs(connection, connection.keys.inodes))
    dict(_pairs(connection, connection.keys.entries))
    with_content = [int(ino) for ino, record in records.items() if _SIZE.unpack_from(record)[0]]
    for start in range(0, len(with_content), _BATCH):
        request = RespRequest()
        for ino in with_content[start : start + _BATCH]:
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
    Workload("mount-empty", "mount an empty scope", 0, SECONDS, _with_files, _imports, only=_PERSISTENT),
    Workload(
        "mount-files", "mount a scope of empty files", 10_000, SECONDS, _with_files, _scanning(b""), only=_PERSISTENT
    ),
    Workload(
        "mount-many-files",
        "mount a scope of many empty files",
        100_000,
        SECONDS,
        _with_files,
        _scanning(b""),
        only=_PERSISTENT,
    ),
    Workload(
        "mount-content",
        "mount a scope of files of 1 MiB",
        512,
        SECONDS,
        _starting(_fill_with_content),
        _scanning(bytes(range(1, 256)) * 4112 + bytes(range(1, 17))),
        only=_PERSISTENT,
    ),
)
