"""What the demonstrations stand on: a store and a scope of their own, mounted, killed and mounted again.

Everything lies below one temporary directory and is gone at the end. A store that was named with ``--redis`` or
``--sqlite`` is not ours: only the demonstration's own scope in it is dropped.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

SCOPE = "demo-of-vfsd"


class Stage:
    """A mount of :data:`SCOPE` in *store*, below *place*."""

    def __init__(self, store: str, place: Path) -> None:
        self.mountpoint = place / "mnt"
        self._store = store
        self._log = place / "log"
        os.environ |= {"VFSD_STORE": store, "VFSD_RUNTIME_DIR": str(place / "run")}

    def mount(self) -> None:
        """Mount, and return when the files are there."""
        _vfsd("mount", str(self.mountpoint), "--scope", SCOPE, "--log-file", str(self._log))

    def kill(self) -> None:
        """End the daemon as a crash would; return when its mount answers no more."""
        mounts = json.loads(_vfsd("status", "--json"))
        (pid,) = [mount["pid"] for mount in mounts if mount["mountpoint"] == str(self.mountpoint)]
        os.kill(pid, signal.SIGKILL)
        while _answers_at(self.mountpoint):
            time.sleep(0.01)

    def store_holds(self, text: str) -> bool:
        """Whether *text* is anywhere in what the store keeps of the scope."""
        kind, _, rest = self._store.partition(":")
        found = _in_sqlite(Path(rest)) if kind == "sqlite" else _in_redis(self._store)
        return any(text.encode() in piece for piece in found)

    def end(self) -> None:
        """Unmount and drop the scope."""
        _vfsd("umount", str(self.mountpoint))
        _vfsd("destroy", SCOPE, "--yes")


@contextmanager
def stage(description: str) -> Iterator[Stage]:
    """Give a mounted stage on the store that the command line names."""
    parser = argparse.ArgumentParser(description=description)
    store = parser.add_mutually_exclusive_group()
    store.add_argument("--redis", metavar="URL", help="a Redis to use; a private one is started by default")
    store.add_argument("--sqlite", metavar="PATH", type=Path, help="a SQLite file to use instead")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vfsd-demo-") as directory, _store(given, Path(directory)) as url:
        on = Stage(url, Path(directory))
        on.mount()
        try:
            yield on
        finally:
            on.end()


@contextmanager
def _store(given: argparse.Namespace, place: Path) -> Iterator[str]:
    if given.redis:
        yield given.redis
    elif given.sqlite:
        yield f"sqlite:{given.sqlite.absolute()}"
    else:
        with _private_redis(place) as url:
            yield url


@contextmanager
def _private_redis(place: Path) -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        sys.exit("there is no redis-server: apt install redis-server, or use --redis URL or --sqlite PATH")
    address = place / "redis.sock"
    command = [program, "--port", "0", "--unixsocket", str(address), "--dir", str(place), "--save", ""]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            while not _is_ready(address):
                time.sleep(0.01)
            yield f"unix://{address}?db=0"
        finally:
            server.terminate()


def _is_ready(address: Path) -> bool:
    try:
        with redis.Redis(unix_socket_path=str(address)) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False


def _in_sqlite(path: Path) -> Iterator[bytes]:
    yield from (file.read_bytes() for file in (path, path.with_name(f"{path.name}-wal")) if file.exists())


def _in_redis(url: str) -> Iterator[bytes]:
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter(f"vfsd:{{{SCOPE}}}:*", _type="HASH"):
            for field, value in client.hscan_iter(key):
                yield field + b" " + value


def _answers_at(mountpoint: Path) -> bool:
    try:
        os.statvfs(mountpoint)
    except OSError:
        return False
    return True


def _vfsd(*arguments: str) -> str:
    """Run a vfsd command and return what it printed; what it complains of goes to the terminal, and ends this."""
    command = [sys.executable, "-m", "vfsd", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"the demonstration ended early: vfsd {arguments[0]} failed, and says above why")
    return done.stdout
