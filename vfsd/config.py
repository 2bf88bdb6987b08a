"""The operator's decisions, as frozen values, and what the environment says.

This is the only module that reads environment variables. It parses no command line: :mod:`vfsd.cli` does that, and
holds the defaults of the options.
"""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from vfsd.errors import UsageError
from vfsd.store.base import Fsync
from vfsd.store.url import DEFAULT_STORE
from vfsd.tree.change import Limits

_LONGEST_PASSWORD = 64 << 10


class DirectoryMtime(StrEnum):
    """Which directories get a new modification time when content anywhere below them changes.

    ``skills``: the directories of skills, and those above them. ``posix``: none. ``all``: all directories.
    """

    SKILLS = "skills"
    POSIX = "posix"
    ALL = "all"


class SeedSpec(NamedTuple):
    """What to seed: *source* is an absolute path on this host, *dest* a path in the scope or None for the default."""

    source: str
    dest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MountConfig:
    """One mount.

    No field has a default: the defaults are those of the command's options, and mypy finds an option that is missing.

    *options* are mount options as given to ``-o``, without contradictions. *owner* (uid, gid) is shown for every file.
    *limits* are the limits of the scope that this mount changes. *max_memory* limits the daemon, in bytes; 0 is no
    limit. *store_timeout* is the longest a commit may take, in seconds. *skills* and *seeds* are seeded before the
    mount is ready. With *keep_stored* a stored file is shown instead of a seed at the same path. A log file
    of *log_max* bytes is followed by a new one; 0 is no limit.
    """

    mountpoint: str
    scope: str
    store: str
    options: tuple[str, ...]
    read_only: bool
    owner: tuple[int, int] | None
    xattr: bool
    must_exist: bool
    take_over: bool
    allow_eviction: bool
    salvage: bool
    store_timeout: float
    fsync: Fsync
    limits: Limits
    max_memory: int
    skills: tuple[SeedSpec, ...]
    seeds: tuple[SeedSpec, ...]
    keep_stored: bool
    directory_mtime: DirectoryMtime
    loose_references: tuple[bytes, ...]
    log_file: str | None
    log_max: int
    verbosity: int
    debug: bool


def store_url(option: str | None) -> str:
    """Return the URL of the store: that of the ``--store`` *option*, else ``$VFSD_STORE``, else Redis on this host.

    An empty ``$VFSD_STORE`` counts as unset. Raises UsageError if *option* is empty: then it was probably a shell
    variable that is not set.
    """
    if option is not None and not option.strip():
        raise UsageError("--store is empty: name a store, or leave the option out")
    return option or os.environ.get("VFSD_STORE") or DEFAULT_STORE


def store_password(file: str | None) -> str | None:
    """Return the password of the store: the content of *file*, else ``$VFSD_STORE_PASSWORD``, else None.

    One newline at the end of *file* is not part of it. An empty ``$VFSD_STORE_PASSWORD`` counts as unset. Raises
    UsageError if *file* cannot be read or is empty.
    """
    if file is None:
        return os.environ.get("VFSD_STORE_PASSWORD") or None
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(_LONGEST_PASSWORD + 1)
    except OSError as error:
        raise UsageError(f"--store-password-file {file}: {error.strerror}") from None
    password = os.fsdecode(content.removesuffix(b"\n").removesuffix(b"\r"))
    if not password or len(content) > _LONGEST_PASSWORD:
        what = "longer than any password" if password else "empty"
        raise UsageError(f"--store-password-file {file}: {what}; write the password of the store into it")
    return password


def runtime_dir() -> Path:
    """Return the directory where this user's mounts are registered.

    It is ``$VFSD_RUNTIME_DIR``, else ``/run/vfsd`` for root, else ``vfsd`` in ``$XDG_RUNTIME_DIR``. Raises UsageError
    if ``$VFSD_RUNTIME_DIR`` is relative, because a daemon has another working directory.
    """
    if chosen := os.environ.get("VFSD_RUNTIME_DIR"):
        if not Path(chosen).is_absolute():
            raise UsageError(f"VFSD_RUNTIME_DIR is {chosen}: it must be an absolute path")
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/run/vfsd")
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    return Path(base) / "vfsd" if Path(base).is_absolute() else Path(f"/tmp/vfsd-{os.geteuid()}")  # noqa: S108 (made 0700, owner checked)


def default_log_file(scope: str) -> Path:
    """Return the log file of a detached daemon: in ``/var/log/vfsd`` for root, else in the user's state directory."""
    if os.geteuid() == 0:
        return Path("/var/log/vfsd") / f"{scope}.log"
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "vfsd" / f"{scope}.log"


def completion_request() -> bool:
    """Return whether a shell asks what may come next in a command line (click answers it)."""
    return os.environ.get("_VFSD_COMPLETE", "").endswith("_complete")


def typed_line() -> str:
    """Return the command line up to the cursor, as the completion script of bash passes it."""
    return os.environ.get("VFSD_TYPED", "")


def notify_socket() -> str | None:
    """Return the address where systemd waits for a readiness message (:manpage:`sd_notify(3)`), or None."""
    return os.environ.get("NOTIFY_SOCKET")
