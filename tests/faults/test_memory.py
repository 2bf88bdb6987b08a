"""Memory goes back: removed content leaves the process of the daemon, and ``--max-memory`` has room for it again.

A small file is written after each large piece and stays. So the freed memory never lies at the end of the heap, where
the C library returns it by itself.
"""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.outcomes import DONE, outcome
from tests.support.servers import RedisServer
from vfsd.client import vfs

MIB = 1 << 20
CONTENT = 96 * MIB
BLOCK = os.urandom(MIB)
LEFT = 32 * MIB
"""What may stay: the memory that is always left to the allocator, and half as much for everything else."""
LAST_COMMITS = 32 * MIB
"""What a claim on Redis keeps of its last commits, to store them again."""


def resident(mounted: Mounted) -> int:
    """Return the bytes of the daemon that are in RAM."""
    pages = int(Path(f"/proc/{mounted.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def peak(mounted: Mounted) -> int:
    """Return the most bytes of the daemon that were ever in RAM."""
    lines = Path(f"/proc/{mounted.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def fill_one_file(directory: Path) -> Path:
    """Write CONTENT to one file in *directory* and return it."""
    pins = directory.with_name("pins")
    pins.mkdir()
    file = directory / "large"
    with file.open("wb", buffering=0) as large:
        for number in range(CONTENT // MIB):
            large.write(BLOCK)
            (pins / str(number)).write_bytes(BLOCK[:4096])
    return file


def remove_one_file(directory: Path) -> None:
    fill_one_file(directory).unlink()


def truncate(directory: Path) -> None:
    os.truncate(fill_one_file(directory), 0)


def rewrite(directory: Path) -> None:
    fill_one_file(directory).write_bytes(b"short")


def rename_over(directory: Path) -> None:
    file = fill_one_file(directory)
    (directory / "other").write_bytes(b"other")
    (directory / "other").rename(file)


def close_unlinked(directory: Path) -> None:
    file = fill_one_file(directory)
    with file.open("rb"):
        file.unlink()


def remove_many_files(directory: Path) -> None:
    """Make and remove 4,000 files of 24 KiB in 40 directories. Every hundredth file stays."""
    pins = directory.with_name("pins")
    pins.mkdir()
    for number in range(4000):
        place = directory / str(number // 100)
        place.mkdir(exist_ok=True)
        (place / str(number)).write_bytes(BLOCK[: CONTENT // 4000])
        if number % 100 == 0:
            (pins / str(number)).write_bytes(BLOCK[:4096])
    for place in directory.iterdir():
        shutil.rmtree(place)


@pytest.mark.parametrize("remove", [remove_one_file, truncate, rewrite, rename_over, close_unlinked, remove_many_files])
def test_removed_content_leaves_the_process(mount: MountFactory, remove: Callable[[Path], None]) -> None:
    mounted = mount("memory:")
    mounted.expected.append("lives in the daemon")
    before = resident(mounted)
    place = mounted.path / "place"
    place.mkdir()
    remove(place)
    assert peak(mounted) > before + CONTENT
    wait_until(lambda: resident(mounted) < before + LEFT, "the memory to go back")


def test_removed_content_leaves_the_process_on_redis(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url)
    before = resident(mounted)
    place = mounted.path / "place"
    place.mkdir()
    remove_one_file(place)
    assert peak(mounted) > before + CONTENT
    wait_until(lambda: resident(mounted) < before + LAST_COMMITS + LEFT, "the memory to go back")


def test_what_a_client_has_read_leaves_the_process(
    server: RedisServer, mount: MountFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection stays open and asks nothing more: the answer must not wait in memory for the next request."""
    mounted = mount(server.url)
    monkeypatch.setenv("VFSD_RUNTIME_DIR", mounted.environment["VFSD_RUNTIME_DIR"])
    (mounted.path / "file").write_bytes(BLOCK * 64)
    before = resident(mounted)
    with vfs.connect(mounted.path) as client:
        assert client.read_file("file") == BLOCK * 64
        assert peak(mounted) > before + 64 * MIB
        wait_until(lambda: resident(mounted) < before + LEFT, "the memory to go back")


def fill(mounted: Mounted, size: int) -> int:
    """Write files of *size* bytes until there is no room. Return the bytes written."""
    number = 0
    while outcome(lambda at=mounted.path / f"file{number}": at.write_bytes(BLOCK[:size])) == DONE:  # type: ignore[misc]
        number += 1
        assert number * size < CONTENT * 2, "the limit does not hold"
    return number * size


def test_a_mount_that_was_filled_and_emptied_takes_as_much_again(server: RedisServer, mount: MountFactory) -> None:
    """Again and again, in files of other sizes, at once and after the memory has gone back."""
    small = mount(server.url)
    limit = resident(small) + LAST_COMMITS + 48 * MIB
    assert small.stop() == 0
    mounted = mount(server.url, "--max-memory", str(limit), scope=small.scope)
    for size in (MIB, 64 << 10, MIB):
        assert fill(mounted, size) > 32 * MIB
        assert peak(mounted) < limit + 16 * MIB
        for file in mounted.path.iterdir():
            file.unlink()
        assert outcome(lambda: (mounted.path / "again").write_bytes(BLOCK)) == DONE
        (mounted.path / "again").unlink()
        wait_until(lambda: resident(mounted) < limit - 32 * MIB, "the memory to go back")


def test_the_limit_holds_while_many_write_at_once(server: RedisServer, mount: MountFactory) -> None:
    small = mount(server.url)
    limit = resident(small) + 48 * MIB
    assert small.stop() == 0
    mounted = mount(server.url, "--max-memory", str(limit), scope=small.scope)
    ends: list[str] = []

    def write_until_full(file: Path) -> None:
        with file.open("wb", buffering=0) as opened:
            while (end := outcome(lambda: opened.write(BLOCK))) == DONE:
                pass
        ends.append(end)

    writers = [threading.Thread(target=write_until_full, args=(mounted.path / str(n),)) for n in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert ends == ["ENOSPC"] * len(writers)
    assert peak(mounted) < limit + 16 * MIB
