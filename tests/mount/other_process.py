"""A second process that works on a file during a test: ``python -m tests.mount.other_process NAME ARGUMENT…``.

NAME is one of the functions below. The process prints a line when it reaches a point that the test waits for. Then it
waits until its standard input ends.
"""

import fcntl
import mmap
import os
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


class OtherProcess:
    """A running second process, seen from the test."""

    def __init__(self, name: str, *arguments: str | Path | int) -> None:
        command = [sys.executable, "-m", "tests.mount.other_process", name, *map(str, arguments)]
        self._process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read_line(self) -> str:
        """Wait for the next line that it prints, and return it."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def resume(self) -> None:
        """Let it continue, and do not wait."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def finish(self) -> str:
        """Let it continue, wait for its end, and return the rest of its output. It must exit with 0."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        output = self._process.stdout.read()
        self._process.wait(60)
        assert self._process.returncode == 0
        return output.strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    @property
    def pid(self) -> int:
        return self._process.pid


@contextmanager
def other_process(name: str, *arguments: str | Path | int) -> Iterator[OtherProcess]:
    """Start the function *name* in a second process, and kill it at the end of the block."""
    process = OtherProcess(name, *arguments)
    try:
        yield process
    finally:
        process.kill()


# --- what runs in the second process


def append(path: str, tag: str, count: str) -> None:
    """Append *count* numbered lines, each with one write(2)."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    _report("ready")
    for number in range(int(count)):
        os.write(fd, f"{tag} {number}\n".encode())


def hold_flock(path: str) -> None:
    """Hold an exclusive lock on the whole file (:manpage:`flock(2)`)."""
    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    _report("locked")


def hold_lockf(path: str, start: str, length: str) -> None:
    """Hold an exclusive record lock (:manpage:`fcntl_locking(2)`)."""
    fd = os.open(path, os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_EX, int(length), int(start))
    _report("locked")


def wait_lockf(path: str) -> None:
    """Wait for a record lock on the whole file."""
    fd = os.open(path, os.O_RDWR)
    _report("waiting")
    fcntl.lockf(fd, fcntl.LOCK_EX)
    _report("locked")


def ask_lockf(path: str, start: str, length: str) -> None:
    """Report the pid of the process that holds a conflicting record lock, or 0."""
    request = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, int(start), int(length), 0)
    fd = os.open(path, os.O_RDWR)
    kind, _, _, _, pid = struct.unpack("hhqqi", fcntl.fcntl(fd, fcntl.F_GETLK, request)[: struct.calcsize("hhqqi")])
    _report(str(0 if kind == fcntl.F_UNLCK else pid))


def map_and_write(path: str, text: str) -> None:
    """Write *text* into a shared mapping, and keep it mapped."""
    fd = os.open(path, os.O_RDWR)
    with mmap.mmap(fd, 0) as shared:
        shared[: len(text)] = text.encode()
        _report("written")


def insert(database: str, tag: str, count: str) -> None:
    """Insert *count* rows into an SQLite database, one transaction for each row."""
    connection = sqlite3.connect(database, timeout=60, isolation_level=None)
    _report("ready")
    for number in range(int(count)):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO lines VALUES (?, ?)", (tag, number))
        connection.execute("COMMIT")
    connection.close()


def hold_open(path: str) -> None:
    """Keep a file open."""
    os.open(path, os.O_RDONLY)
    _report("open")


def sit_in(directory: str) -> None:
    """Make *directory* the working directory."""
    os.chdir(directory)
    _report("there")


def look_as(directory: str, uid: str) -> None:
    """Report, as user *uid*, the names in *directory*, or the name of the error."""
    os.chdir(directory)
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    try:
        _report(" ".join(sorted(os.listdir())))
    except OSError as error:
        _report(type(error).__name__)


def _report(text: str) -> None:
    """Print a line, and wait until the test lets this process continue."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
