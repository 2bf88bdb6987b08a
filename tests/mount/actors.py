"""What another process does to a file while a test looks on: ``python -m tests.mount.actors NAME ARGUMENT…``.

An actor says a line when it has come to a point that the test must know of, and goes on when its input ends.
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


class Acting:
    """A running actor."""

    def __init__(self, name: str, *arguments: str | Path | int) -> None:
        command = [sys.executable, "-m", "tests.mount.actors", name, *map(str, arguments)]
        self._process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def hear(self) -> str:
        """Return the next line it says."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def let_go(self) -> None:
        """Let it go on, and do not wait."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def go_on(self) -> str:
        """Let it end well, and return what else it says."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        said = self._process.stdout.read()
        self._process.wait(60)
        assert self._process.returncode == 0
        return said.strip()

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
def acting(name: str, *arguments: str | Path | int) -> Iterator[Acting]:
    """Give an actor, which is gone afterwards."""
    actor = Acting(name, *arguments)
    try:
        yield actor
    finally:
        actor.kill()


# --- in the other process


def append(path: str, tag: str, count: str) -> None:
    """Append *count* numbered lines, each by one write."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    _say("ready")
    for number in range(int(count)):
        os.write(fd, f"{tag} {number}\n".encode())


def hold_flock(path: str) -> None:
    """Hold an exclusive lock of the whole file (:manpage:`flock(2)`)."""
    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    _say("locked")


def hold_lockf(path: str, start: str, length: str) -> None:
    """Hold an exclusive record lock (:manpage:`fcntl_locking(2)`)."""
    fd = os.open(path, os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_EX, int(length), int(start))
    _say("locked")


def wait_lockf(path: str) -> None:
    """Wait for a record lock on all of the file."""
    fd = os.open(path, os.O_RDWR)
    _say("waiting")
    fcntl.lockf(fd, fcntl.LOCK_EX)
    _say("locked")


def ask_lockf(path: str, start: str, length: str) -> None:
    """Say the pid of whoever holds a conflicting record lock, or 0."""
    question = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, int(start), int(length), 0)
    fd = os.open(path, os.O_RDWR)
    kind, _, _, _, pid = struct.unpack("hhqqi", fcntl.fcntl(fd, fcntl.F_GETLK, question)[: struct.calcsize("hhqqi")])
    _say(str(0 if kind == fcntl.F_UNLCK else pid))


def map_and_write(path: str, text: str) -> None:
    """Write *text* into a shared mapping, and keep it mapped."""
    fd = os.open(path, os.O_RDWR)
    with mmap.mmap(fd, 0) as shared:
        shared[: len(text)] = text.encode()
        _say("written")


def insert(database: str, tag: str, count: str) -> None:
    """Insert *count* rows into an SQLite database, each in a transaction of its own."""
    connection = sqlite3.connect(database, timeout=60, isolation_level=None)
    _say("ready")
    for number in range(int(count)):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO lines VALUES (?, ?)", (tag, number))
        connection.execute("COMMIT")
    connection.close()


def hold_open(path: str) -> None:
    """Keep a file open."""
    os.open(path, os.O_RDONLY)
    _say("open")


def sit_in(directory: str) -> None:
    """Have *directory* as working directory."""
    os.chdir(directory)
    _say("there")


def look_as(directory: str, uid: str) -> None:
    """Say, as user *uid*, what is in *directory*, or the name of the error that keeps it from looking."""
    os.chdir(directory)
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    try:
        _say(" ".join(sorted(os.listdir())))
    except OSError as error:
        _say(type(error).__name__)


def _say(text: str) -> None:
    """Say a line, and wait to be let go on."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
