"""Functions that find, wait for and end processes, and that drop the caches of this machine.

They must never touch a process that the bench did not start. A daemon of the bench has its mountpoint in its command
line.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TIMEOUT_S = 120.0
"""Seconds after which the bench stops waiting for an event."""

ROOT = Path(__file__).parent.parent
"""This checkout: the directory of the packages vfsd and bench."""

_IDLE_S = 0.05
_IDLE_TICKS = 1
_BUSY_S = 10.0


class BenchError(Exception):
    """A candidate or the machine cannot do what was asked. The text says in one line what failed and why."""


def wait_until(condition: Callable[[], object], what: str, pause: float = 0.005) -> None:
    """Return when *condition* is true. It is called every *pause* seconds.

    Raises BenchError with *what* if it is still false after TIMEOUT_S.
    """
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise BenchError(f"gave up waiting for {what}")
        time.sleep(pause)


def run(command: list[str], env: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
    """Run *command* to its end and return its output.

    Raises BenchError with the last line of its output if it fails.
    """
    try:
        done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except FileNotFoundError:
        raise BenchError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"{' '.join(command[:4])} did not end within {TIMEOUT_S:.0f} s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it printed nothing"]
        raise BenchError(f"{' '.join(command[:4])} failed ({done.returncode}): {lines[-1]}")
    return done.stdout


def keep_bytecode(directory: Path) -> None:
    """Let the programs in Python that are started from here keep the bytecode of what they import in *directory*.

    An installed package has its bytecode. A checkout has none where PYTHONDONTWRITEBYTECODE is set: then a measured
    start would be the time of the compiler.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(directory)


@contextmanager
def signals_ignored() -> Iterator[None]:
    """Ignore Ctrl-C and SIGTERM in the block, because cleaning up must be complete."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)


def processes_of(mountpoint: Path) -> list[int]:
    """Return the processes that have *mountpoint* as an argument.

    They are its daemon and the command that starts the daemon.
    """
    argument = b" %b " % os.fsencode(mountpoint)
    return [pid for pid in _other_processes() if argument in _arguments(pid)]


def _other_processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()]


def _arguments(pid: int) -> bytes:
    """Return the arguments of *pid*, with a space before and after each; or nothing if it has ended.

    The kernel separates arguments with zero bytes. JuiceFS overwrites them with one text, which separates them with
    spaces.
    """
    try:
        return b" %b " % Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:  # the process has ended
        return b""


def kill(pids: Iterable[int]) -> None:
    """Send SIGKILL to *pids*. A process that has already ended is not an error."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def resident_bytes(pid: int) -> int:
    """Return the bytes of *pid* that are in RAM (VmRSS, :manpage:`proc(5)`). Raises BenchError if it has ended."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise BenchError(f"process {pid} has no memory: it has ended")


def wait_until_idle(pids: Iterable[int]) -> None:
    """Return when *pids* use no processor time, because they may still process earlier requests.

    Return after 10 s in any case.
    """
    known = list(pids)
    deadline = time.monotonic() + _BUSY_S
    before = _ticks(known)
    while time.monotonic() < deadline:
        time.sleep(_IDLE_S)
        now = _ticks(known)
        if now - before <= _IDLE_TICKS:
            return
        before = now


def _ticks(pids: Iterable[int]) -> int:
    """Return the processor time of *pids*, in clock ticks."""
    total = 0
    for pid in pids:
        with suppress(OSError):  # the process has ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total


def drop_caches() -> None:
    """Drop the clean pages, names and inodes of all file systems from the kernel. Raises BenchError if not root."""
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
    except OSError as error:
        raise BenchError(f"cannot drop the caches of this host: {error.strerror}; run the bench as root") from None


def detach(mountpoint: Path) -> None:
    """Remove all mounts at *mountpoint*, even if they are busy or their daemon is dead."""
    while subprocess.run(["umount", "-l", mountpoint], capture_output=True, check=False).returncode == 0:
        pass
