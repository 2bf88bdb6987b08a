"""Every way vfsd can fail, the errno a caller sees for it, and the exit status a command ends with.

One table, so that two layers can never translate the same failure differently. Raise the classes; only the
file-system guard (:mod:`vfsd.fuse.guard`) and the command line (:mod:`vfsd.cli`) read the tables.
It must never import another module of the project.
"""

import errno
import os


class VfsdError(Exception):
    """What an operator can act on: one line that says what failed, on what, why, and what to do next."""


class FsError(VfsdError):
    """A rule of the file system refuses an operation; *errno* is the caller's answer, *why* says more, for people."""

    def __init__(self, number: int, why: str = "") -> None:
        super().__init__(f"{os.strerror(number)}: {why}" if why else os.strerror(number))
        self.errno = number
        self.why = why or os.strerror(number)


class StaleFile(FsError):
    """A file is not the one that its writer has seen. Modification times in ns; *actual* None: there is no file."""

    def __init__(self, expected_mtime_ns: int, actual_mtime_ns: int | None) -> None:
        found = "there is no such file" if actual_mtime_ns is None else f"it was modified at {actual_mtime_ns} ns"
        super().__init__(errno.ESTALE, f"expected to be modified at {expected_mtime_ns} ns, but {found}; read it again")
        self.expected_mtime_ns = expected_mtime_ns
        self.actual_mtime_ns = actual_mtime_ns


class StoreError(VfsdError):
    """The store did not do what it was asked. Nothing has changed unless :class:`InDoubt` says so."""


class StoreUnreachable(StoreError):
    """The store does not answer, or not in time."""


class InDoubt(StoreUnreachable):
    """A commit was sent and its answer never came: it may or may not have been stored.

    The store settles it as soon as it is reached again; :meth:`settled` waits for that.
    """

    async def settled(self) -> bool:
        """Return whether the change turned out to be stored. Waits for as long as the store is away."""
        raise NotImplementedError


class StoreFull(StoreError):
    """The store has no room for what grows (Redis ``maxmemory``, a full disk)."""


class StoreReadOnly(StoreError):
    """The store refuses writes: a replica, a read-only file."""


class StoreRefused(StoreError):
    """The store answered and said no: credentials, rights, an unfit configuration, a command it lacks."""


class Fenced(StoreReadOnly):
    """Another owner has claimed the scope: this mount may never write again."""


class ScopeBusy(StoreError):
    """The scope is mounted by a living owner elsewhere."""


class ScopeMissing(StoreError):
    """There is no such scope in the store."""


class ScopeDamaged(StoreError):
    """A record of the scope cannot be understood; the message names its key and the remedy."""


class ScopeChanged(StoreError):
    """A scope was written by its owner while it was read without a claim: read it again."""


class FormatTooNew(StoreError):
    """The scope was written by a newer format than this version reads."""


class UsageError(VfsdError):
    """The command was asked for something that cannot be meant."""


class MountpointError(VfsdError):
    """The mountpoint cannot be used: wrong kind, not empty, taken, not permitted."""


class FuseUnavailable(VfsdError):
    """This machine cannot mount FUSE file systems: no ``/dev/fuse``, no rights, no helper."""


class MountBusy(VfsdError):
    """The mount is in use; the message names who holds it."""


class NotMounted(VfsdError):
    """There is no vfsd mount at that place."""


class UncleanEnd(VfsdError):
    """The daemon ended, but not everything could be finished or released."""


ERRNO: dict[type[VfsdError], int] = {
    StoreUnreachable: errno.EIO,
    StoreFull: errno.ENOSPC,
    StoreReadOnly: errno.EROFS,
    StoreRefused: errno.EIO,
    ScopeDamaged: errno.EIO,
    ScopeBusy: errno.EBUSY,
}

EXIT_STATUS: dict[type[VfsdError], int] = {
    VfsdError: 1,
    UsageError: 2,
    StoreUnreachable: 3,
    ScopeChanged: 3,
    StoreError: 1,
    StoreRefused: 4,
    StoreReadOnly: 4,
    StoreFull: 5,
    ScopeMissing: 6,
    ScopeBusy: 7,
    ScopeDamaged: 8,
    FormatTooNew: 8,
    MountpointError: 9,
    FuseUnavailable: 10,
    MountBusy: 11,
    NotMounted: 12,
    UncleanEnd: 13,
}


def errno_of(error: VfsdError) -> int:
    """Return the errno that a caller of the file system sees for *error*; EIO where the table has none."""
    if isinstance(error, FsError):
        return error.errno
    return next((ERRNO[kind] for kind in type(error).__mro__ if kind in ERRNO), errno.EIO)


def exit_status_of(error: VfsdError) -> int:
    """Return the status with which a command that ends in *error* exits."""
    return next(EXIT_STATUS[kind] for kind in type(error).__mro__ if kind in EXIT_STATUS)
