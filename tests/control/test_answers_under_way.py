"""An answer that is under way when the kernel is told to forget does not survive: also one that introduces an inode."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from tests.support.mounted import PATIENCE
from vfsd import Vfs

CHANGES, POLLERS, END = 3, 2, -1


def _poll(top: Path, name: str, current: "Synchronized[int]") -> None:
    """Ask for the attributes of the current file and the one before, until the current one is END."""
    while (number := current.value) != END:
        for each in (number, number - 1):
            with suppress(FileNotFoundError):
                (top / name.format(each)).stat()


@contextmanager
def _polled(top: Path, name: str) -> "Iterator[Synchronized[int]]":
    """Let other processes look at files called *name* meanwhile; what is given says which one is the current file."""
    context = get_context("fork")
    current = context.Value("i", 0)
    pollers = [context.Process(target=_poll, args=(top, name, current)) for _ in range(POLLERS)]
    for poller in pollers:
        poller.start()
    try:
        yield current
    finally:
        current.value = END
        for poller in pollers:
            poller.join(PATIENCE)


def _stat(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def test_attributes_are_never_old_after_changes_by_the_socket(top: Path, vfs: Vfs) -> None:
    expected = {}
    with _polled(top, "file{}") as current:
        for number in range(800):
            current.value = number
            for change in range(CHANGES):
                written = vfs.write_file(f"file{number}", b"x" * (change + 1))
            expected[number] = (written.mtime_ns, written.size)
    assert {number: _stat(top / f"file{number}") for number in expected} == expected


def test_attributes_of_seeds_are_never_old(top: Path, vfs: Vfs) -> None:
    numbers = range(250)
    with _polled(top, "seed{}") as current:
        for number in numbers:
            current.value = number
            for change in range(CHANGES):
                vfs.seed_file(f"seed{number}", b"x" * (change + 1))
    assert {number: (top / f"seed{number}").stat().st_size for number in numbers} == dict.fromkeys(numbers, CHANGES)


def test_times_of_directories_are_never_old(top: Path, vfs: Vfs) -> None:
    numbers = range(150)
    with _polled(top, "d{}") as current:
        for number in numbers:
            current.value = number
            vfs.mkdir(f"d{number}")
            for _ in range(CHANGES):
                vfs.write_file(f"d{number}/SKILL.md", b"text")
    shown = {number: (top / f"d{number}").stat().st_mtime_ns for number in numbers}
    assert shown == {number: vfs.stat(f"d{number}").mtime_ns for number in numbers}
