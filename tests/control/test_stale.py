"""Compare-and-write: of several writers that expect the same modification time exactly one succeeds."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tests.control.conftest import Connect
from tests.support.mounted import PATIENCE, Mounted
from tests.support.store_comparison import assert_store_matches
from vfsd import StaleFileError, Vfs

WRITERS, ROUNDS = 4, 25


def test_a_file_with_the_expected_time_is_written(top: Path, vfs: Vfs) -> None:
    (top / "file").write_bytes(b"one")
    first_ns = (top / "file").stat().st_mtime_ns
    second = vfs.write_file("file", b"two", expected_mtime_ns=first_ns)
    third = vfs.write_file("file", b"three", expected_mtime_ns=second.mtime_ns)
    assert first_ns // 1_000_000 < second.mtime_ns // 1_000_000 < third.mtime_ns // 1_000_000
    assert (top / "file").read_bytes() == b"three"


def test_a_file_with_another_time_is_not_written(top: Path, vfs: Vfs) -> None:
    first = vfs.write_file("file", b"one")
    (top / "file").write_bytes(b"two")
    actual = (top / "file").stat().st_mtime_ns
    with pytest.raises(StaleFileError, match="read it again") as caught:
        vfs.write_file("file", b"three", expected_mtime_ns=first.mtime_ns)
    assert (caught.value.errno, caught.value.filename) == (errno.ESTALE, "file")
    assert (caught.value.expected_mtime_ns, caught.value.actual_mtime_ns) == (first.mtime_ns, actual)
    assert (top / "file").read_bytes() == b"two"


def test_a_missing_file_is_not_created(top: Path, vfs: Vfs) -> None:
    for path in ("file", "missing/file"):
        with pytest.raises(StaleFileError, match="there is no such file") as caught:
            vfs.write_file(path, b"", expected_mtime_ns=7, parents=True)
        assert (caught.value.expected_mtime_ns, caught.value.actual_mtime_ns) == (7, None)
    assert os.listdir(top) == []


def test_of_several_clients_exactly_one_wins(mounted: Mounted, connected: Connect) -> None:
    clients = [connected(mounted) for _ in range(WRITERS)]
    barrier = Barrier(WRITERS)
    expected = clients[0].write_file("file", b"").mtime_ns

    def compete(number: int, expected: int) -> int | None:
        barrier.wait(PATIENCE)
        try:
            return clients[number].write_file("file", bytes([number]), expected_mtime_ns=expected).mtime_ns
        except StaleFileError:
            return None

    with ThreadPoolExecutor(WRITERS) as pool:
        for _ in range(ROUNDS):
            attempts = [pool.submit(compete, number, expected) for number in range(WRITERS)]
            results = [attempt.result(PATIENCE) for attempt in attempts]
            ((winner, expected),) = ((number, mtime) for number, mtime in enumerate(results) if mtime is not None)
            assert (mounted.path / "file").read_bytes() == bytes([winner])
            assert (mounted.path / "file").stat().st_mtime_ns == expected
    assert_store_matches(mounted)


def test_of_several_clients_exactly_one_creates(mounted: Mounted, connected: Connect) -> None:
    clients = [connected(mounted) for _ in range(WRITERS)]
    barrier = Barrier(WRITERS)

    def compete(number: int, path: str) -> bool:
        barrier.wait(PATIENCE)
        try:
            return clients[number].write_file(path, bytes([number]), create_only=True, parents=True).created
        except FileExistsError:
            return False

    with ThreadPoolExecutor(WRITERS) as pool:
        for round_ in range(ROUNDS):
            attempts = [pool.submit(compete, number, f"d{round_}/file") for number in range(WRITERS)]
            results = [attempt.result(PATIENCE) for attempt in attempts]
            assert sorted(results) == [False] * (WRITERS - 1) + [True]
            assert (mounted.path / f"d{round_}/file").read_bytes() == bytes([results.index(True)])
    assert_store_matches(mounted)
