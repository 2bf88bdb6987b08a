"""A real vfsd mount for tests, with the daemon in a separate process. It is always cleaned up.

After each test there is no process and no mount, and the daemon's log has no warning that the test did not expect.
Tests never use a mount from the process that serves it.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vfsd.host import mountpoint as mountpoints

PATIENCE = 60.0
"""Seconds to wait for a condition before the test fails. No result depends on a shorter time."""

EXPECTED = (r"does not persist \(no append-only file", r"keeps snapshots only")
"""Warnings that every log may contain: the private servers of the tests persist nothing."""

_WARNING = re.compile(r" (WARNING|ERROR|CRITICAL) |Traceback|Warning:")


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Return as soon as *condition* is true. Fail after :data:`PATIENCE`; *what* says what was waited for."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting for {what}"
        time.sleep(0.01)  # the interval between two checks


def _is_stopped(pid: int) -> bool:
    """Return whether all threads of *pid* are stopped (state T of :manpage:`proc_pid_stat(5)`)."""
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in threads)


class Mounted:
    """A mount of *scope* in *store* at *path*, served by ``vfsd mount --foreground`` with *options*."""

    def __init__(self, path: Path, scope: str, store: str, *options: str, runtime: Path, log: Path) -> None:
        self.path = path
        self.scope = scope
        self.store = store
        self.log = log
        self.expected: list[str] = list(EXPECTED)
        self._options = options
        self._runtime = runtime
        self._daemon: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment for commands that use this mount."""
        return {**os.environ, "VFSD_RUNTIME_DIR": os.fspath(self._runtime), "VFSD_STORE": self.store}

    @property
    def pid(self) -> int:
        """The process id of the daemon."""
        assert self._daemon is not None, "not started"
        return self._daemon.pid

    def start(self, *more: str) -> None:
        """Mount, with *more* options this time only, and return when the mount answers."""
        command = [sys.executable, "-m", "vfsd", "mount", "--foreground", os.fspath(self.path)]
        command += ["--scope", self.scope, "--store", self.store, *self._options, *more]
        with self.log.open("ab") as log:
            self._daemon = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stderr=log)
        wait_until(lambda: self.has_ended() or self._answers(), f"the mount at {self.path}")
        assert not self.has_ended(), f"the daemon ended: {self.log.read_text()}"

    def is_mounted(self) -> bool:
        """Whether the mount table contains this mount."""
        return mountpoints.mount_at(os.fspath(self.path)) is not None

    def _answers(self) -> bool:
        """Whether the new mount answers.

        A dead mount at the same path may be replaced between two of these steps, so the order matters.
        """
        try:
            os.statvfs(self.path)
            if not self.is_mounted():
                return False
            os.statvfs(self.path)  # the directory below the mount may have answered the first call
        except OSError:  # not mounted yet, or the dead mount of a killed daemon
            return False
        return True

    def has_ended(self) -> bool:
        """Whether the daemon's process has ended, or was never started."""
        return self._daemon is None or self._daemon.poll() is not None

    def stop(self) -> int:
        """End the daemon with SIGTERM, and return its exit status."""
        return self.signal(signal.SIGTERM)

    def signal(self, number: signal.Signals) -> int:
        """Send a signal that ends the daemon, and return its exit status."""
        assert self._daemon is not None, "not started"
        self._daemon.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait for the daemon to end by itself, and return its exit status."""
        assert self._daemon is not None, "not started"
        return self._daemon.wait(PATIENCE)

    def kill(self) -> None:
        """End the daemon as in a crash (SIGKILL). A dead mount is left."""
        self.signal(signal.SIGKILL)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the daemon process during the block (SIGSTOP). All its threads have stopped first."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: _is_stopped(self.pid), "the daemon to stop")
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def remount(self) -> None:
        """Unmount cleanly and mount again."""
        assert self.stop() == 0, self.log.read_text()
        self.start()

    def vfsd(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a vfsd command in the environment of this mount, with *text* on its standard input."""
        return run_vfsd(*arguments, env=self.environment, text=text)

    def unexpected(self) -> list[str]:
        """Return the lines of the log with a warning or an error that the test did not expect."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return [
            line
            for line in lines
            if _WARNING.search(line) and not any(re.search(known, line) for known in self.expected)
        ]

    def _is_detached(self) -> bool:
        """Detach the mount if there is one, and return whether it is gone. It may also disappear by itself."""
        if self.is_mounted():
            subprocess.run(["umount", "-l", os.fspath(self.path)], check=False, capture_output=True)
        return not self.is_mounted()

    def clean_up(self) -> None:
        """End the process and remove the mount, in whatever state they are."""
        if self._daemon is not None and self._daemon.poll() is None:
            self._daemon.send_signal(signal.SIGCONT)
            self._daemon.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._daemon.wait(10)
            self._daemon.kill()
            self._daemon.wait()
        wait_until(self._is_detached, f"the mount at {self.path} to disappear")


def run_vfsd(*arguments: str, env: dict[str, str], text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a vfsd command, with *text* on its standard input, and return its result."""
    command = [sys.executable, "-m", "vfsd", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, input=text, timeout=PATIENCE, check=False)


class MountFactory:
    """Makes mounts below *base* for one test."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._made: list[Mounted] = []

    def __call__(self, store: str, *options: str, scope: str | None = None, start: bool = True) -> Mounted:
        """Return a mount of *scope* (a new one by default) in *store*, started unless told otherwise."""
        number = len(self._made)
        mounted = Mounted(
            self._base / f"mnt{number}",
            scope or f"{self._base.name}-{number}",
            store,
            *options,
            runtime=self._base / "run",
            log=self._base / f"vfsd{number}.log",
        )
        self._made.append(mounted)
        if start:
            mounted.start()
        return mounted

    def clean_up(self) -> list[str]:
        """End all mounts, and return the unexpected lines of their logs."""
        for mounted in self._made:
            mounted.clean_up()
        return [line for mounted in self._made for line in mounted.unexpected()]


@contextmanager
def mounting(base: Path) -> Iterator[MountFactory]:
    """Yield a factory of mounts below *base*. Afterwards end all mounts, and fail if a log has unexpected lines."""
    factory = MountFactory(base)
    try:
        yield factory
    finally:
        unexpected = factory.clean_up()
    assert not unexpected, "unexpected in the daemon's log:\n" + "\n".join(unexpected)
