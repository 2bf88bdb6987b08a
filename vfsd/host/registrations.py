"""The registered mounts of this host: a small file for each, in the same directory as its control socket.

``vfsd status`` reads them. A file may be out of date, because a killed daemon leaves it. So the mount table decides
whether a mount exists, and the control socket whether its daemon lives.

The directory may lie in ``/tmp``, where every user can make it first. So a reader trusts it as little as a writer does:
see :func:`_check_trust`.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import socket
import stat
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from vfsd.config import runtime_dir
from vfsd.errors import VfsdError
from vfsd.host.mount_table import mount_at

_SUFFIXES = (".json", ".sock")
_CONNECT_SECONDS = 2.0
_LONGEST_DIRECTORY = 107 - len("/0123456789abcdef.sock")
"""Longest directory in bytes. The address of a socket has 107 bytes at most (:manpage:`unix(7)`)."""


@dataclass(frozen=True, slots=True)
class Registration:
    """What a daemon writes when its mount is ready. *since_ns* is its start time.

    *device* is the number of the mount in the mount table; :func:`register` finds it out.
    """

    scope: str
    mountpoint: str
    store: str
    pid: int
    since_ns: int
    version: str
    device: str = ""


def register(registration: Registration) -> Path:
    """Write *registration* in one step, and return the path for the control socket. Raises VfsdError."""
    base = _base(registration.mountpoint, make=True)
    _set_aside(base)
    mount = mount_at(registration.mountpoint)
    registration = replace(registration, device=mount.device if mount else "")
    draft = base.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(asdict(registration)))
    draft.replace(base.with_suffix(".json"))
    return base.with_suffix(".sock")


def _set_aside(base: Path) -> None:
    """Keep what another daemon has registered at *base*, under a name that has its pid.

    Its mount was removed lazily, or it is dead. A living daemon stays listed until it ends.
    """
    other = _read(base.with_suffix(".json"))
    if other is not None and other.pid != os.getpid():
        aside = _aside(base, other.pid)
        for suffix in _SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                base.with_suffix(suffix).rename(aside.with_suffix(suffix))
        if not _listens(aside.with_suffix(".sock")):
            _remove(aside)


def _aside(base: Path, pid: int) -> Path:
    return base.with_name(f"{base.name}-{pid}")


def _remove(base: Path) -> None:
    for suffix in _SUFFIXES:
        base.with_suffix(suffix).unlink(missing_ok=True)


def _listens(path: Path) -> bool:
    """Return whether a process listens at the socket *path*."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_CONNECT_SECONDS)
        try:
            connection.connect(os.fspath(path))
        except OSError:
            return False
        return True


def unregister(mountpoint: str) -> None:
    """Remove the registration of this process at *mountpoint*, and its socket: not what another has registered since.

    Nothing is removed from a directory that cannot be trusted.
    """
    try:
        base = _base(mountpoint)
    except VfsdError:
        return
    _remove(_aside(base, os.getpid()))
    registration = _read(base.with_suffix(".json"))
    if registration is None or registration.pid == os.getpid():
        _remove(base)


def registered(mountpoint: str) -> Registration | None:
    """Return the registration of *mountpoint* (absolute), or None. Raises VfsdError."""
    return _read(_base(mountpoint).with_suffix(".json"))


class Reservation:
    """The exclusive right to mount at a mountpoint: a lock (:manpage:`flock(2)`) on the file *path*.

    After a fork both processes share the lock. The child keeps the reservation, and the parent calls :meth:`forget`.
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
        """End the reservation: others may mount there. A second call does nothing."""
        if self.descriptor >= 0:
            self._path.unlink(missing_ok=True)  # before the unlock: reserve() then sees that its file is gone
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            self.forget()

    def forget(self) -> None:
        """Leave the reservation to the forked process: close this process's descriptor, and keep the lock."""
        os.close(self.descriptor)
        self.descriptor = -1


def reserve(mountpoint: str) -> Reservation | None:
    """Reserve *mountpoint* (absolute), or return None if another process has reserved it.

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
    except (BlockingIOError, FileNotFoundError):  # locked, or removed between our open and our lock
        pass
    reservation.forget()
    return None


def every() -> list[Registration]:
    """Return all registrations, also those that dead daemons have left. A directory that is not trusted has none."""
    directory = runtime_dir()
    try:
        _check_trust(directory, {os.geteuid(), 0})
    except VfsdError:
        return []
    found = [_read(path) for path in sorted(directory.glob("*.json"))]
    return [registration for registration in found if registration is not None]


def socket_of(registration: Registration) -> Path:
    """Return the path of the control socket of *registration*. Raises VfsdError."""
    base = _base(registration.mountpoint)
    aside = _aside(base, registration.pid)
    return (aside if aside.with_suffix(".json").exists() else base).with_suffix(".sock")


def socket_path(mountpoint: str) -> Path:
    """Return the path of the control socket for *mountpoint* (absolute). Raises VfsdError."""
    return _base(mountpoint).with_suffix(".sock")


def _read(path: Path) -> Registration | None:
    try:
        return Registration(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):  # removed meanwhile, or not a registration
        return None


def _base(mountpoint: str, *, make: bool = False) -> Path:
    """Return the path of the files for *mountpoint*, without suffix. With *make* the directory is created.

    Raises VfsdError if the directory cannot be made, or cannot be trusted. A missing directory is not an error.
    """
    directory = runtime_dir()
    if make:
        _make(directory)
    _check_trust(directory, {os.geteuid()} if make else {os.geteuid(), 0})
    return directory / hashlib.sha256(os.fsencode(mountpoint)).hexdigest()[:16]


def _make(directory: Path) -> None:
    """Create *directory*. Raises VfsdError if that fails, or if it is too long for the address of a socket."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(directory, error.strerror) from None
    if len(os.fsencode(directory)) > _LONGEST_DIRECTORY:
        raise _unusable(directory, f"longer than {_LONGEST_DIRECTORY} bytes, too long for a socket in it")


def _unusable(directory: Path, why: str | None) -> VfsdError:
    return VfsdError(f"cannot use {directory} for registering mounts: {why}; set VFSD_RUNTIME_DIR to another")


def _check_trust(directory: Path, owners: set[int]) -> None:
    """Raise VfsdError if somebody else may have made what lies in *directory*.

    It must be a directory and no link, belong to one of the uids *owners*, and nobody else may write to it. Otherwise a
    stranger could put a socket there, and be handed the content that a client writes.
    """
    try:
        info = directory.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unusable(directory, error.strerror) from None
    if not stat.S_ISDIR(info.st_mode):
        raise _unusable(directory, "it is a link or a file, not a directory")
    if info.st_uid not in owners or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise VfsdError(f"{directory} must belong to uid {os.geteuid()} alone: remove it, or set VFSD_RUNTIME_DIR")
