"""The file systems that are compared. Each can be mounted empty, remounted without any cache, and removed completely.

A candidate never decides what is measured. It only says whether its writes need an ``fsync`` to be stored.
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
    """A file system at *mountpoint*, with its other files below *base*.

    *durable* tells the workloads to call fsync after each write that the file system only buffers.
    """

    durable = False

    def __init__(self, base: Path) -> None:
        self.base = base
        self.mountpoint = base / "mnt"
        self.mountpoint.mkdir()

    @property
    def pids(self) -> list[int]:
        """All processes that work for this candidate."""
        return []

    @abstractmethod
    def mount(self) -> None:
        """Mount, and return when the mount answers. Raises BenchError."""

    def unmount(self) -> None:
        """Unmount, as an operator does. What is stored can be mounted again. Raises BenchError."""
        raise BenchError("its content is lost when it is unmounted")

    def make_cold(self) -> None:
        """Remove everything of this candidate from the caches of this host: of its daemon and of the kernel."""
        process.drop_caches()

    def close(self) -> None:
        """Remove the mount and end the processes, also after a failure."""
        process.detach(self.mountpoint)


class Tmpfs(Candidate):
    """The kernel's RAM disk: the speed without any guarantee."""

    def mount(self) -> None:
        """See :meth:`Candidate.mount`."""
        process.run(["mount", "-t", "tmpfs", "-o", "size=80%,mode=700", "bench", str(self.mountpoint)])


class Daemon(Candidate):
    """A file system that is served by one or more processes. *helpers* are the servers that these processes use."""

    directory = process.ROOT
    """The working directory of :attr:`command`."""

    def __init__(self, base: Path) -> None:
        super().__init__(base)
        self.helpers: list[int] = []
        self.log = base / "log"
        self._launcher: subprocess.Popen[bytes] | None = None

    @property
    def pids(self) -> list[int]:
        """See :attr:`Candidate.pids`."""
        return process.processes_of(self.mountpoint) + self.helpers

    @property
    @abstractmethod
    def command(self) -> list[str]:
        """The command that mounts it."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment of :attr:`command`."""
        return dict(os.environ)

    def mount(self) -> None:
        """Start the daemon, and return at the moment when another file system answers at the mountpoint."""
        before = self.mountpoint.stat().st_dev
        with (self.base / "output").open("wb") as output:
            self._launcher = subprocess.Popen(
                self.command,
                env=self.environment,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        process.wait_until(lambda: self._is_mounted(before), f"the mount at {self.mountpoint}", pause=0.001)

    def _is_mounted(self, before: int) -> bool:
        """Whether the device at the mountpoint differs from *before*. Raises BenchError if the command failed."""
        assert self._launcher is not None, "called while mounting"
        if self._launcher.poll():
            output = (self.base / "output").read_text(errors="replace")
            lines = output.strip().splitlines() or ["it printed nothing"]
            raise BenchError(f"{self.command[0]} could not mount: {lines[-1]}")
        return self.mountpoint.stat().st_dev != before

    def wait_until_started(self) -> None:
        """Return when the command that started the daemon has ended."""
        assert self._launcher is not None, "called after mounting"
        self._launcher.wait(process.TIMEOUT_S)

    def wait_until_ended(self) -> None:
        """Return when the daemon, and the command that started it, have ended."""
        if self._launcher is not None:
            self._launcher.wait(process.TIMEOUT_S)
        process.wait_until(lambda: not process.processes_of(self.mountpoint), f"the daemon of {self.mountpoint} to end")

    def close(self) -> None:
        """See :meth:`Candidate.close`. The content is not needed any more, so the daemon is killed."""
        process.kill(process.processes_of(self.mountpoint))
        process.detach(self.mountpoint)
        self.wait_until_ended()


class Floor(Daemon):
    """The smallest file system on pyfuse3 and trio, with its content in dictionaries. See :mod:`bench.floor`."""

    @property
    def command(self) -> list[str]:
        """See :attr:`Daemon.command`."""
        return [sys.executable, "-m", "bench.floor", str(self.mountpoint)]


class Vfsd(Daemon):
    """vfsd on the store with the URL *store*, with *options* for ``vfsd mount``.

    The package is the one in the directory *checkout*. Its commands run with this Python, also in another checkout.
    """

    def __init__(self, base: Path, store: str, *options: str, checkout: Path = process.ROOT) -> None:
        super().__init__(base)
        self.store = store
        self.directory = checkout
        self._options = options
        # The directory is not below *base*, because the path of a unix socket must be short.
        self._runtime = tempfile.TemporaryDirectory(prefix="vfsd-run-")

    @property
    def command(self) -> list[str]:
        """See :attr:`Daemon.command`."""
        place = ["--scope", "bench", "--store", self.store, "--log-file", str(self.log)]
        return [sys.executable, "-m", "vfsd", "mount", str(self.mountpoint), *place, *self._options]

    @property
    def environment(self) -> dict[str, str]:
        """See :attr:`Daemon.environment`."""
        return {**import_from(self.directory), "VFSD_RUNTIME_DIR": self._runtime.name}

    def unmount(self) -> None:
        """See :meth:`Candidate.unmount`."""
        command = [sys.executable, "-m", "vfsd", "umount", str(self.mountpoint)]
        process.run(command, self.environment, self.directory)
        self.wait_until_ended()

    def close(self) -> None:
        """See :meth:`Candidate.close`."""
        super().close()
        self._runtime.cleanup()

    def make_cold(self) -> None:
        """Mount again from the store. A scope on ``memory:`` stays mounted, because it would be lost."""
        if self.store != "memory:":
            self.unmount()
            self.mount()
        process.drop_caches()


def import_from(checkout: Path) -> dict[str, str]:
    """Return the environment in which ``python -m vfsd`` imports the package of *checkout*.

    ``python -m`` searches the working directory first, unless PYTHONSAFEPATH is set. PYTHONPATH comes next. Both come
    before the installed packages, so an editable installation of another checkout has no effect.
    """
    return {**os.environ, "PYTHONPATH": str(checkout)}


class JuiceFS(Daemon):
    """JuiceFS with its defaults: *program*, with metadata and data in the Redis server at TCP port *port*.

    Two defaults are changed. It sends no usage report. It deletes files at once, as the other candidates do, and does
    not keep them as trash for a day.
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
        place = ["--cache-dir", str(self._cache), "--log", str(self.log), "--no-syslog"]
        return [self._program, "mount", "-d", "--no-usage-report", *place, f"{self._server}/1", str(self.mountpoint)]

    def mount(self) -> None:
        """See :meth:`Daemon.mount`. The first call also formats the file system."""
        if not self._is_formatted:
            data = ["--storage", "redis", "--bucket", f"{self._server}/2", "--trash-days", "0"]
            process.run([self._program, "format", *data, f"{self._server}/1", "bench"])
            self._is_formatted = True
        super().mount()

    def unmount(self) -> None:
        """See :meth:`Candidate.unmount`."""
        process.run([self._program, "umount", str(self.mountpoint)])
        self.wait_until_ended()

    def make_cold(self) -> None:
        """Mount again with an empty cache directory."""
        self.unmount()
        process.run(["rm", "-rf", str(self._cache)])
        self.mount()
        process.drop_caches()


class DurableJuiceFS(JuiceFS):
    """JuiceFS with fsync after each write. It then promises the same as vfsd: an acknowledged write is stored."""

    durable = True


@contextmanager
def mounted(candidate: Candidate) -> Iterator[Candidate]:
    """Mount *candidate* for the block. Afterwards remove its mount and its processes."""
    try:
        candidate.mount()
        yield candidate
    finally:
        with process.signals_ignored():
            candidate.close()
