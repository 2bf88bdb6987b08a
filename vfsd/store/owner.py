"""Who holds a scope: enough to name it to a person, and to tell on its own host whether it still lives."""

import json
import os
import secrets
import socket
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from vfsd import clock
from vfsd.errors import ScopeDamaged


@dataclass(frozen=True, slots=True)
class Owner:
    """One life of one daemon.

    *token* is unique to it. *host_id* identifies a boot and a process namespace, within which *pid* and
    *started* (its start time in clock ticks, :manpage:`proc_pid_stat(5)`) identify a process.
    """

    token: str
    host: str
    host_id: str
    pid: int
    started: int
    mountpoint: str
    since_ns: int

    def to_json(self) -> str:
        """Return the owner as it is stored."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def is_gone(self) -> bool:
        """Whether the daemon is known to have ended: this is its host, and its process is no more.

        Where that cannot be found out (no descriptor left, no rights), it is not known.
        """
        try:
            return self.host_id == _host_id() and not _lives(self.pid, self.started)
        except OSError:
            return False

    def describe(self) -> str:
        """Return one phrase for people: host, pid, mountpoint and since when."""
        age = max(0, clock.now() - self.since_ns) // 1_000_000_000
        return f"host {self.host}, pid {self.pid}, at {self.mountpoint}, since {age} s ago"


def from_json(text: str | bytes) -> Owner:
    """Return a stored owner; what a newer vfsd may have added is left out. Raises ScopeDamaged if it is none."""
    try:
        record = json.loads(text)
        return Owner(**{field.name: record[field.name] for field in fields(Owner)})
    except KeyError as error:
        raise ScopeDamaged(f"the owner record lacks {error}: {text!r}") from None
    except (ValueError, TypeError) as error:
        raise ScopeDamaged(f"the owner record cannot be read ({error}): {text!r}") from None


def this_process(mountpoint: str) -> Owner:
    """Return this process as an owner that will serve *mountpoint*."""
    pid = os.getpid()
    return Owner(
        token=secrets.token_hex(16),
        host=socket.gethostname(),
        host_id=_host_id(),
        pid=pid,
        started=_started(pid) or 0,
        mountpoint=mountpoint,
        since_ns=clock.now(),
    )


def _host_id() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"


def _lives(pid: int, started: int) -> bool:
    """Whether process *pid* is there and the one that *started* then. Raises OSError if that cannot be found out."""
    try:
        return _started(pid) == started
    except (FileNotFoundError, ProcessLookupError):
        return _can_be_signalled(pid)


def _can_be_signalled(pid: int) -> bool:
    """Whether there is a process *pid*: /proc may hide those of other users (:manpage:`proc(5)`, hidepid).

    Raises PermissionError if there is one of another user.
    """
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _started(pid: int) -> int | None:
    """Return when process *pid* started (clock ticks since boot), or None for a zombie.

    Raises FileNotFoundError or ProcessLookupError if it is not to be seen, and OSError if /proc cannot be read.
    """
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    state, started = after_name[0], after_name[19]
    return None if state in "ZX" else int(started)
