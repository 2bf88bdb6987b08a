"""Processes and caches of this machine, as a measurement needs them: found, waited for, ended, emptied.

It must never touch a process that was not started by the bench: a daemon is known by the
mountpoint in its command line.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TIMEOUT_S = 120.0
"""Seconds after which something that should come about is given up."""

ROOT = Path(__file__).parent.parent
"""The checkout: where ``python -m vfsd`` is found."""

_QUIET_S = 0.05
_QUIET_TICKS = 1
_LOUD_S = 10.0


class BenchError(Exception):
    """A candidate or the machine cannot do what was asked; the text says what and why, in one line."""


def wait_until(condition: Callable[[], object], what: str, pause: float = 0.005) -> None:
    """Return once *condition* holds, asked every *pause* seconds. Raises BenchError, naming *what*, if it does not."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise BenchError(f"gave up waiting for {what}")
        time.sleep(pause)


def run(command: list[str], env: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Run *command* to its end and return what it printed. Raises BenchError with the last line of its complaint."""
    try:
        done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError:
        raise BenchError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"{' '.join(command[:4])} did not end within {TIMEOUT_S:.0f} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        raise BenchError(f"{' '.join(command[:4])} failed ({done.returncode}): {said[-1]}")
    return done.stdout


@contextmanager
def signals_ignored() -> Iterator[None]:
    """Let neither Ctrl-C nor SIGTERM cut short what is in the block: cleaning up."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)


def processes_of(mountpoint: Path) -> list[int]:
    """Return the processes whose command line names *mountpoint* as a word: its daemon, and what starts it."""
    return [pid for pid in _processes() if os.fsencode(mountpoint) in _words(pid)]


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()]


def _words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:  # it has ended since
        return []


def kill(pids: Iterable[int]) -> None:
    """End *pids* at once (SIGKILL); those that have ended already are none."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def resident_bytes(pid: int) -> int:
    """Return the memory of *pid* that is in RAM (VmRSS, :manpage:`proc(5)`)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise BenchError(f"process {pid} has no memory: it has ended")


def wait_until_idle(pids: Iterable[int]) -> None:
    """Return once *pids* have stopped working off what was asked of them before; after 10 s in any case."""
    known = list(pids)
    deadline = time.monotonic() + _LOUD_S
    before = _ticks(known)
    while time.monotonic() < deadline:
        time.sleep(_QUIET_S)
        now = _ticks(known)
        if now - before <= _QUIET_TICKS:
            return
        before = now


def _ticks(pids: Iterable[int]) -> int:
    """Return the processor time that *pids* have used, in clock ticks."""
    total = 0
    for pid in pids:
        with suppress(OSError):  # it has ended since
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total


def drop_caches() -> None:
    """Let the kernel forget clean pages, names and inodes of every file system. Raises BenchError unless root."""
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    except OSError as error:
        raise BenchError(f"cannot drop the caches of this host: {error.strerror}; run the bench as root") from None


def detach(mountpoint: Path) -> None:
    """Take away every mount at *mountpoint*, busy or dead."""
    while subprocess.run(["umount", "-l", mountpoint], capture_output=True, check=False).returncode == 0:
        pass
