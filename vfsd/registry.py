"""The mounts of this host: one small file a mount beside its control socket, so that status finds them.

A file is a claim by a process, never the truth: whether the mount is there is the kernel's to say, and whether the
daemon lives is its socket's.
"""

import hashlib
import json
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path

from vfsd.config import runtime_dir
from vfsd.errors import VfsdError


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
    """Remove what :func:`register` wrote, and the socket."""
    base = _base(mountpoint)
    for suffix in (".json", ".sock"):
        base.with_suffix(suffix).unlink(missing_ok=True)


def registered(mountpoint: str) -> Registration | None:
    """Return what is registered for *mountpoint* (absolute), or None."""
    return _read(_base(mountpoint).with_suffix(".json"))


def all_registered() -> list[Registration]:
    """Return all that is registered for this user, by mountpoint."""
    found = (_read(path) for path in runtime_dir().glob("*.json"))
    return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.mountpoint)


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
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_ours(directory)
    return directory / hashlib.sha256(os.fsencode(mountpoint)).hexdigest()[:16]


def _check_ours(directory: Path) -> None:
    """Refuse a directory that someone else could write into."""
    info = directory.stat()
    if info.st_uid != os.geteuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise VfsdError(f"{directory} must belong to uid {os.geteuid()} alone: remove it, or set VFSD_RUNTIME_DIR")
