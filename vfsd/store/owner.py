"""The owner of a claim: enough to describe it to people, and to find out on its own host whether it is still alive."""

import json
import os
import secrets
import socket
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from vfsd import clock
from vfsd.errors import ScopeDamaged

_NUMBERS = {"pid": (1, 2**31 - 1), "started": (0, 2**63 - 1), "since_ns": (0, 2**63 - 1)}
"""The fields of an owner that are numbers, with the least and the largest value of each. All others are text."""

TAKE_OVER = ", or mount with --take-over if it hangs"
"""What a claim adds to what it says of a living owner. To destroy a scope, it is no way out."""
_REMEDY = "wait for the lease to end, or mount with --take-over"


@dataclass(frozen=True, slots=True)
class Owner:
    """One run of a daemon.

    *token* is unique to this run. *host_id* identifies a boot of a host and a PID namespace. In that namespace *pid*
    and *started* (start time in clock ticks, :manpage:`proc_pid_stat(5)`) identify the process.
    """

    token: str
    host: str
    host_id: str
    pid: int
    started: int
    mountpoint: str
    since_ns: int

    def to_json(self) -> str:
        """Return the owner as JSON, the form in which stores keep it."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def is_gone(self) -> bool:
        """Whether the daemon has certainly ended: it ran on this host, and its process does not exist any longer.

        If /proc cannot be read (no file descriptor left, no permission), the answer is False: the owner may be alive.
        """
        try:
            return self.host_id == _host_id() and not _is_alive(self.pid, self.started)
        except OSError:
            return False

    def lives_here(self) -> bool:
        """Whether the daemon certainly lives: it runs on this host. Then it has its scope, whatever the clocks say.

        If that cannot be found out, the answer is False.
        """
        try:
            return self.host_id == _host_id() and _is_alive(self.pid, self.started)
        except OSError:
            return False

    @property
    def place(self) -> str:
        """The mountpoint, after the name of the host if that is another one, for people."""
        return self.mountpoint if self.host == socket.gethostname() else f"{self.host}:{self.mountpoint}"

    def describe(self) -> str:
        """Return one phrase for people: host, pid, mountpoint, and for how long it has the scope."""
        age = max(0, clock.now() - self.since_ns) // 1_000_000_000
        return f"host {self.host}, pid {self.pid}, at {self.mountpoint}, since {age} s ago"


def from_json(text: str | bytes, where: str = "") -> Owner:
    """Return the owner that *text* describes. Fields that a newer vfsd added are ignored.

    Raises ScopeDamaged, which begins with *where*: the key of the record, and a colon.
    """
    try:
        record = json.loads(text)
        owner = Owner(**{field.name: record[field.name] for field in fields(Owner)})
        _check(owner)
    except KeyError as error:
        raise ScopeDamaged(f"{where}the owner record lacks {error}: {_quoted(text)}; {_REMEDY}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise ScopeDamaged(f"{where}the owner record cannot be read ({error}): {_quoted(text)}; {_REMEDY}") from None
    return owner


def describe_json(text: str | bytes) -> str:
    """Return :meth:`Owner.describe` of the owner that *text* describes, or a phrase that says that it is damaged."""
    try:
        return from_json(text).describe()
    except ScopeDamaged as error:
        return f"an unknown one ({error})"


def _check(owner: Owner) -> None:
    """Raise ValueError unless every field of *owner* has its type, and is in its range."""
    for field in fields(Owner):
        value: object = getattr(owner, field.name)
        if field.name in _NUMBERS:
            least, most = _NUMBERS[field.name]
            if not isinstance(value, int) or not least <= value <= most:
                raise ValueError(f"{field.name} {value!r} is no number between {least} and {most}")
        elif not isinstance(value, str):
            raise ValueError(f"{field.name} is no text")


def _quoted(text: str | bytes) -> str:
    return repr(text[:200])


def living_here(text: str | bytes) -> Owner | None:
    """Return the owner that *text* describes, if it certainly lives on this host. None also if *text* is damaged."""
    try:
        owner = from_json(text)
    except ScopeDamaged:
        return None
    return owner if owner.lives_here() else None


def this_process(mountpoint: str) -> Owner:
    """Return this process as the owner that serves *mountpoint*."""
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


def _is_alive(pid: int, started: int) -> bool:
    """Whether process *pid* exists and has this start time. Raises OSError if that cannot be found out."""
    try:
        return _started(pid) == started
    except (FileNotFoundError, ProcessLookupError):
        return _can_be_signalled(pid)


def _can_be_signalled(pid: int) -> bool:
    """Whether process *pid* exists, although /proc does not show it.

    /proc may hide processes of other users (:manpage:`proc(5)`, hidepid). Raises PermissionError for such a process.
    """
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _started(pid: int) -> int | None:
    """Return the start time of process *pid* (clock ticks since boot), or None for a zombie.

    Raises FileNotFoundError or ProcessLookupError if /proc does not show it, and OSError if /proc cannot be read.
    """
    after_name = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()  # a name may have any bytes
    state, started = after_name[0], after_name[19]
    return None if state in b"ZX" else int(started)
