"""What the operator decides, as frozen values; the only place that reads the environment and knows the defaults."""

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from vfsd.errors import UsageError
from vfsd.store.base import Fsync
from vfsd.store.url import DEFAULT_STORE
from vfsd.tree.change import Limits

STORE_TIMEOUT = 5.0
"""Longest a commit may take, in seconds."""

LONGEST_WAIT = 86_400.0
"""Most that any time limit may be, in seconds."""
MOST = 2**63 - 1
"""Largest number that every store can keep."""

_SIZE = re.compile(r"([0-9]{1,20})([KMGT]?)(?:I?B)?")
_COUNT = re.compile(r"[1-9][0-9]{0,3}")
_SCOPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:+-]{0,199}")


class DirectoryMtime(StrEnum):
    """Which directories' modification times move with content anywhere below: skills and above, none, or all."""

    SKILLS = "skills"
    POSIX = "posix"
    ALL = "all"


class SeedSpec(NamedTuple):
    """What is to be seeded: a path on this disk, absolute, and where in the scope; None is the usual place."""

    source: str
    dest: str | None


@dataclass(frozen=True, slots=True)
class MountConfig:
    """One mount.

    *options* are mount options as given to ``-o``; *owner* (uid, gid) is shown for every file; *limits* are those of
    the scope to be changed, *max_memory* the daemon's own, in bytes. *skills* and *seeds* are what is seeded from the
    start; *keep_stored* lets a stored file win over a seed.
    """

    mountpoint: str
    scope: str
    store: str
    options: frozenset[str] = frozenset()
    read_only: bool = False
    owner: tuple[int, int] | None = None
    xattr: bool = False
    must_exist: bool = False
    take_over: bool = False
    allow_eviction: bool = False
    salvage: bool = False
    store_timeout: float = STORE_TIMEOUT
    fsync: Fsync = Fsync()
    limits: Limits = Limits()
    max_memory: int = 0
    skills: tuple[SeedSpec, ...] = ()
    seeds: tuple[SeedSpec, ...] = ()
    keep_stored: bool = False
    directory_mtime: DirectoryMtime = DirectoryMtime.SKILLS
    loose_references: bool = True
    log_file: str | None = None
    verbosity: int = 0
    debug: bool = False


def store_url(given: str | None) -> str:
    """Return the store to use: the one given, else ``$VFSD_STORE`` unless empty, else a Redis on this host.

    Raises UsageError if the one given is empty: a variable that was meant to name it is not set.
    """
    if given is not None and not given.strip():
        raise UsageError("--store is empty: name a store, or leave the option out")
    return given or os.environ.get("VFSD_STORE") or DEFAULT_STORE


def checked_scope(name: str) -> str:
    """Return *name* if a scope may be called so. Raises UsageError."""
    if not _SCOPE.fullmatch(name):
        raise UsageError(
            f"scope {name!r}: a name is up to 200 letters, digits and ._@:+- and begins with a letter or a digit"
        )
    return name


def size(text: str) -> int:
    """Return the bytes that *text* means: a number, with K, M, G or T for powers of 1024. Raises UsageError."""
    match = _SIZE.fullmatch(text.strip().upper())
    if match is None:
        raise UsageError(f"{text!r} is no size: write a number of bytes, or one with K, M, G or T, as in 512M")
    count = int(match[1]) << (10 * "KMGT".index(match[2]) + 10 if match[2] else 0)
    if count > MOST:
        raise UsageError(f"{text!r} is too large: the most is {MOST} bytes")
    return count


def seconds(option: str, given: float) -> float:
    """Return *given* if *option* may wait so long. Raises UsageError."""
    if not 0 < given <= LONGEST_WAIT:  # refuses nan too
        raise UsageError(f"{option} {given:g}: expected seconds, more than 0 and at most {LONGEST_WAIT:g}")
    return given


def fsync(text: str) -> Fsync:
    """Return what ``--fsync`` *text* means: ``none``, ``wait:N`` (replicas) or ``waitaof``. Raises UsageError."""
    if text == "none":
        return Fsync()
    if text == "waitaof":
        return Fsync(aof=True)
    kind, _, count = text.partition(":")
    if kind == "wait" and _COUNT.fullmatch(count):
        return Fsync(replicas=int(count))
    raise UsageError(f"--fsync {text}: expected none, wait:N with N replicas, or waitaof")


def runtime_dir() -> Path:
    """Return where this user's mounts are registered: ``/run/vfsd`` for root, else below ``$XDG_RUNTIME_DIR``.

    ``$VFSD_RUNTIME_DIR`` overrides both; UsageError if it is relative, for a daemon has another working directory.
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
    """Return where a detached daemon logs: ``/var/log/vfsd`` for root, else the user's state directory."""
    if os.geteuid() == 0:
        return Path("/var/log/vfsd") / f"{scope}.log"
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "vfsd" / f"{scope}.log"


def notify_socket() -> str | None:
    """Return the address at which systemd waits to hear that we are ready, if it does (:manpage:`sd_notify(3)`)."""
    return os.environ.get("NOTIFY_SOCKET")
