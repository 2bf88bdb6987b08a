"""What is compared: file systems that can be mounted fresh, made cold, and taken away without a trace.

A candidate never decides what is measured. It says only whether its writes need an ``fsync`` to be stored.
"""

import os
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import process
from bench.process import BenchError


class Candidate(ABC):
    """A file system at *mountpoint*. *durable* asks workloads to fsync what is buffered otherwise."""

    durable = False

    def __init__(self, base: Path) -> None:
        self.base = base
        self.mountpoint = base / "mnt"
        self.mountpoint.mkdir()

    @property
    def pids(self) -> list[int]:
        """All processes that work for it."""
        return []

    @abstractmethod
    def mount(self) -> None:
        """Mount, and return when the mount answers. Raises BenchError."""

    def unmount(self) -> None:
        """Unmount, as an operator would; what was stored can be mounted again. Raises BenchError."""
        raise BenchError("what it holds does not outlive the mount")

    def chill(self) -> None:
        """Make it cold: nothing of it is cached on this host, neither by its daemon nor by the kernel."""
        process.drop_caches()

    def close(self) -> None:
        """Leave neither process nor mount behind, whatever has happened."""
        process.detach(self.mountpoint)


class Tmpfs(Candidate):
    """The kernel's own RAM disk: what can be had without any guarantee."""

    def mount(self) -> None:
        """See :meth:`Candidate.mount`."""
        process.run(["mount", "-t", "tmpfs", "-o", "size=80%,mode=700", "bench", str(self.mountpoint)])


class Daemon(Candidate):
    """A file system that is a process of its own, or several; *helpers* are servers that work for it."""

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.helpers: list[int] = []
        self.log = base / "log"
        self._launcher: subprocess.Popen[bytes] | None = None

    @property
    def pids(self) -> list[int]:
        """See :attr:`Candidate.pids`."""
        return process.serving(self.mountpoint) + self.helpers

    @property
    @abstractmethod
    def command(self) -> list[str]:
        """What mounts it."""

    @property
    def environment(self) -> dict[str, str]:
        """What :attr:`command` is run with."""
        return dict(os.environ)

    def mount(self) -> None:
        """Start it, and return the moment the mountpoint is another file system that answers."""
        before = self.mountpoint.stat().st_dev
        with (self.base / "said").open("wb") as said:
            self._launcher = subprocess.Popen(
                self.command,
                env=self.environment,
                cwd=process.ROOT,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        process.wait_until(lambda: self._is_up(before), f"the mount at {self.mountpoint}", pause=0.001)

    def _is_up(self, before: int) -> bool:
        assert self._launcher is not None, "called while mounting"
        if self._launcher.poll():
            said = (self.base / "said").read_text(errors="replace").strip().splitlines() or ["it said nothing"]
            raise BenchError(f"{self.command[0]} could not mount: {said[-1]}")
        return self.mountpoint.stat().st_dev != before

    def wait_until_started(self) -> None:
        """Return when only the daemon is left of what started it."""
        assert self._launcher is not None, "called after mounting"
        self._launcher.wait(process.PATIENCE)

    def wait_until_ended(self) -> None:
        """Return when neither the daemon nor what started it is left."""
        if self._launcher is not None:
            self._launcher.wait(process.PATIENCE)
        process.wait_until(lambda: not process.serving(self.mountpoint), f"the daemon of {self.mountpoint} to end")

    def close(self) -> None:
        """See :meth:`Candidate.close`. What it holds is of no further use, so it ends at once."""
        process.kill(process.serving(self.mountpoint))
        process.detach(self.mountpoint)
        self.wait_until_ended()


class Floor(Daemon):
    """The floor of the stack: pyfuse3 and trio over dictionaries, see :mod:`bench.floor`."""

    @property
    def command(self) -> list[str]:
        """See :attr:`Daemon.command`."""
        return [sys.executable, "-m", "bench.floor", str(self.mountpoint)]


class Vfsd(Daemon):
    """vfsd on the store that *store* names, with *options* for ``vfsd mount``."""

    def __init__(self, base: Path, store: str, *options: str) -> None:
        super().__init__(base)
        self.store = store
        self._options = options
        self._runtime = tempfile.TemporaryDirectory(prefix="vfsd-run-")  # short: the path of a socket may not be long

    @property
    def command(self) -> list[str]:
        """See :attr:`Daemon.command`."""
        where = ["--scope", "bench", "--store", self.store, "--log-file", str(self.log)]
        return [sys.executable, "-m", "vfsd", "mount", str(self.mountpoint), *where, *self._options]

    @property
    def environment(self) -> dict[str, str]:
        """See :attr:`Daemon.environment`."""
        return {**os.environ, "VFSD_RUNTIME_DIR": self._runtime.name}

    def unmount(self) -> None:
        """See :meth:`Candidate.unmount`."""
        process.run([sys.executable, "-m", "vfsd", "umount", str(self.mountpoint)], self.environment)
        self.wait_until_ended()

    def close(self) -> None:
        """See :meth:`Candidate.close`."""
        super().close()
        self._runtime.cleanup()

    def chill(self) -> None:
        """Mount again, from the store, unless that is memory."""
        if self.store != "memory:":
            self.unmount()
            self.mount()
        process.drop_caches()


class JuiceFS(Daemon):
    """JuiceFS as it comes, *program*, with metadata and data in the Redis server at TCP port *port*.

    Two defaults are changed: it sends no usage report, and what is deleted is deleted, as everywhere else, instead
    of being kept as trash for a day.
    """

    def __init__(self, base: Path, program: Path, port: int) -> None:
        super().__init__(base)
        self._program = str(program)
        self._server = f"redis://127.0.0.1:{port}"
        self._cache = base / "cache"
        self._is_formatted = False

    @property
    def command(self) -> list[str]:
        """See :attr:`Daemon.command`."""
        where = ["--cache-dir", str(self._cache), "--log", str(self.log), "--no-syslog"]
        return [self._program, "mount", "-d", "--no-usage-report", *where, f"{self._server}/1", str(self.mountpoint)]

    def mount(self) -> None:
        """See :meth:`Daemon.mount`; the first time it is formatted too."""
        if not self._is_formatted:
            data = ["--storage", "redis", "--bucket", f"{self._server}/2", "--trash-days", "0"]
            process.run([self._program, "format", *data, f"{self._server}/1", "bench"])
            self._is_formatted = True
        super().mount()

    def unmount(self) -> None:
        """See :meth:`Candidate.unmount`."""
        process.run([self._program, "umount", str(self.mountpoint)])
        self.wait_until_ended()

    def chill(self) -> None:
        """Mount again, with an empty cache."""
        self.unmount()
        process.run(["rm", "-rf", str(self._cache)])
        self.mount()
        process.drop_caches()


class DurableJuiceFS(JuiceFS):
    """The same; what it acknowledges before it is stored is followed by fsync, which is what vfsd promises always."""

    durable = True


@contextmanager
def closing(candidate: Candidate) -> Iterator[Candidate]:
    """Mount *candidate*; afterwards nothing of it is left."""
    try:
        candidate.mount()
        yield candidate
    finally:
        with process.undisturbed():
            candidate.close()
