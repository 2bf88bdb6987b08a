"""The mounts of this host: one small file a mount beside its control socket, so that status finds them.

A file is a claim by a process, never the truth: whether the mount is there is the kernel's to say, and whether the
daemon lives is its socket's.
"""

import fcntl
import hashlib
import json
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from vfsd.config import runtime_dir
from vfsd.errors import VfsdError

_LONGEST_DIRECTORY = 107 - len("/0123456789abcdef.sock")
"""Bytes that a socket's address leaves for its directory (:manpage:`unix(7)`)."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What a daemon says of itself when its mount is ready. *since_ns* is when it was started."""

    scope: str
    mountpoint: str
    store: str
    pid: int
    since_ns: int
    version: str


def register(registration: Registration) -> Path:
    """Write *registration* down, whole or not at all, and return the path of the control socket to go with it."""
    base = _base(registration.mountpoint, make=True)
    draft = base.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(asdict(registration)))
    draft.replace(base.with_suffix(".json"))
    return base.with_suffix(".sock")


def unregister(mountpoint: str) -> None:
    """Remove what this process registered, and its socket; but nothing of a successor's."""
    base = _base(mountpoint)
    found = _read(base.with_suffix(".json"))
    if found is not None and found.pid != os.getpid():
        return
    for suffix in (".json", ".sock"):
        base.with_suffix(suffix).unlink(missing_ok=True)


def registered(mountpoint: str) -> Registration | None:
    """Return what is registered for *mountpoint* (absolute), or None."""
    return _read(_base(mountpoint).with_suffix(".json"))


class Reservation:
    """A mountpoint kept for whoever is making a mount there, by a lock (:manpage:`flock(2)`) on a file of its own.

    Across a fork it is one reservation: the child goes on with it, and the parent only forgets it.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self.descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Let others make a mount there. May be called again."""
        if self.descriptor >= 0:
            self._path.unlink(missing_ok=True)  # first: whoever waits for the lock then sees that the file is another
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            self.forget()

    def forget(self) -> None:
        """Leave it to the process that was forked."""
        os.close(self.descriptor)
        self.descriptor = -1


def reserve(mountpoint: str) -> Reservation | None:
    """Reserve *mountpoint* (absolute), or return None if somebody else is making a mount there.

    Raises VfsdError if the directory of registrations cannot be used.
    """
    path = _base(mountpoint, make=True).with_suffix(".lock")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unusable(path.parent, error.strerror) from None
    reservation = Reservation(path, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return reservation
    except (BlockingIOError, FileNotFoundError):  # locked, or its holder has just ended it
        pass
    reservation.forget()
    return None


def socket_path(mountpoint: str) -> Path:
    """Return where the daemon serving *mountpoint* (absolute) listens."""
    return _base(mountpoint).with_suffix(".sock")


def _read(path: Path) -> Registration | None:
    try:
        return Registration(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):  # gone meanwhile, or not ours
        return None


def _base(mountpoint: str, *, make: bool = False) -> Path:
    directory = runtime_dir()
    if make:
        _make(directory)
    return directory / hashlib.sha256(os.fsencode(mountpoint)).hexdigest()[:16]


def _make(directory: Path) -> None:
    """See that *directory* is there, ours, and that a socket in it can have an address."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(directory, error.strerror) from None
    if len(os.fsencode(directory)) > _LONGEST_DIRECTORY:
        raise _unusable(directory, f"longer than {_LONGEST_DIRECTORY} bytes, too long for a socket in it")
    _check_ours(directory)


def _unusable(directory: Path, why: str | None) -> VfsdError:
    return VfsdError(f"cannot use {directory} for registering mounts: {why}; set VFSD_RUNTIME_DIR to another")


def _check_ours(directory: Path) -> None:
    """Refuse a directory that someone else could write into."""
    info = directory.stat()
    if info.st_uid != os.geteuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise VfsdError(f"{directory} must belong to uid {os.geteuid()} alone: remove it, or set VFSD_RUNTIME_DIR")
