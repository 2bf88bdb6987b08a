"""The mount of the demonstrations: it starts a store, mounts a scope, and can kill the daemon and mount again.

Everything is below one temporary directory, which is removed at the end. A store from ``--redis`` or ``--sqlite`` is
kept: only the scope of the demonstration is dropped from it.
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


class DemoMount:
    """A mount of :data:`SCOPE` in *store*. All its files are below *directory*."""

    def __init__(self, store: str, directory: Path) -> None:
        self.mountpoint = directory / "mnt"
        self._store = store
        self._log = directory / "log"
        os.environ |= {"VFSD_STORE": store, "VFSD_RUNTIME_DIR": str(directory / "run")}

    def mount(self) -> None:
        """Mount, and return when the files can be read."""
        _vfsd("mount", str(self.mountpoint), "--scope", SCOPE, "--log-file", str(self._log))

    def kill(self) -> None:
        """End the daemon as in a crash. Return when its mount no longer answers."""
        mounts = json.loads(_vfsd("status", "--json"))
        (pid,) = [mount["pid"] for mount in mounts if mount["mountpoint"] == str(self.mountpoint)]
        os.kill(pid, signal.SIGKILL)
        while _answers_at(self.mountpoint):
            time.sleep(0.01)

    def store_holds(self, text: str) -> bool:
        """Whether *text* is anywhere in the store's records of the scope."""
        kind, _, rest = self._store.partition(":")
        found = _in_sqlite(Path(rest)) if kind == "sqlite" else _in_redis(self._store)
        return any(text.encode() in piece for piece in found)

    def end(self) -> None:
        """Unmount and drop the scope."""
        _vfsd("umount", str(self.mountpoint))
        _vfsd("destroy", SCOPE, "--yes")


@contextmanager
def demo_mount(description: str) -> Iterator[DemoMount]:
    """Mount a scope in the store that the command line names, and clean up at the end."""
    parser = argparse.ArgumentParser(description=description)
    store = parser.add_mutually_exclusive_group()
    store.add_argument("--redis", metavar="URL", help="a Redis to use; a private one is started by default")
    store.add_argument("--sqlite", metavar="PATH", type=Path, help="a SQLite file to use instead")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vfsd-demo-") as directory, _store(arguments, Path(directory)) as url:
        mount = DemoMount(url, Path(directory))
        mount.mount()
        try:
            yield mount
        finally:
            mount.end()


@contextmanager
def _store(arguments: argparse.Namespace, directory: Path) -> Iterator[str]:
    if arguments.redis:
        yield arguments.redis
    elif arguments.sqlite:
        yield f"sqlite:{arguments.sqlite.absolute()}"
    else:
        with _private_redis(directory) as url:
            yield url


@contextmanager
def _private_redis(directory: Path) -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        sys.exit("there is no redis-server: apt install redis-server, or use --redis URL or --sqlite PATH")
    address = directory / "redis.sock"
    command = [program, "--port", "0", "--unixsocket", str(address), "--dir", str(directory), "--save", ""]
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
    """Run a vfsd command and return its output. If it fails, its error is on the terminal: end the demonstration."""
    command = [sys.executable, "-m", "vfsd", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"the demonstration ended early: vfsd {arguments[0]} failed, see the error above")
    return done.stdout
