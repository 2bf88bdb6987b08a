"""Every failure of vfsd as a class, with the errno that a caller sees and the exit status of a command.

There is one table for each, so that two layers never translate the same failure differently. All modules raise the
classes. Only the two ends translate them: :func:`errno_of` is called where an answer leaves the daemon
(:mod:`vfsd.fuse.guard`, :mod:`vfsd.control.server`), :func:`exit_status_of` where a process ends (:mod:`vfsd.cli`,
:mod:`vfsd.daemon.process`). This module never imports another module of the project.
"""

import errno
import os


class VfsdError(Exception):
    """Any failure that vfsd foresees. Its message is one line: what failed, on what, why, and what to do next."""


class FsError(VfsdError):
    """A rule of the file system refuses an operation. *number* is the errno for the caller, *why* explains it."""

    def __init__(self, number: int, why: str = "") -> None:
        super().__init__(f"{os.strerror(number)}: {why}" if why else os.strerror(number))
        self.errno = number
        self.why = why or os.strerror(number)


class StaleFile(FsError):
    """A file was not last modified when its writer expected (times in ns). *actual_mtime_ns* None: there is no file."""

    def __init__(self, expected_mtime_ns: int, actual_mtime_ns: int | None) -> None:
        actual = "there is no such file" if actual_mtime_ns is None else f"it was modified at {actual_mtime_ns} ns"
        super().__init__(
            errno.ESTALE, f"expected to be modified at {expected_mtime_ns} ns, but {actual}; read it again"
        )
        self.expected_mtime_ns = expected_mtime_ns
        self.actual_mtime_ns = actual_mtime_ns


class StoreError(VfsdError):
    """The store did not carry out a request. It is unchanged, except perhaps for :class:`InDoubt`."""


class StoreUnreachable(StoreError):
    """The store does not answer, or not in time."""


class InDoubt(StoreUnreachable):
    """A commit was sent, and its answer was lost: the change may be stored or not.

    The store finds out as soon as it is reached again; :meth:`settled` waits for that.
    """

    async def settled(self) -> bool:
        """Return whether the change is stored. Wait for this as long as the store is unreachable."""
        raise NotImplementedError


class StoreFull(StoreError):
    """The store has no room for a change that grows (Redis ``maxmemory``, a full disk)."""


class StoreReadOnly(StoreError):
    """The store refuses writes: a replica, a read-only file."""


class StoreRefused(StoreError):
    """The store refuses: wrong credentials, missing rights, an unsuitable configuration, an unknown command."""


class Fenced(StoreReadOnly):
    """Another owner has claimed the scope: this mount may never write again."""


class ScopeBusy(StoreError):
    """The scope is mounted by a living owner elsewhere."""


class ScopeMissing(StoreError):
    """There is no such scope in the store."""


class ScopeDamaged(StoreError):
    """A record of the scope is invalid. The message names its key and the remedy."""


class ScopeChanged(StoreError):
    """The owner of a scope wrote to it while it was read without a claim: read it again."""


class FormatTooNew(StoreError):
    """The scope was written by a newer format than this version reads."""


class UsageError(VfsdError):
    """An argument, an option or an environment variable is wrong."""


class MountpointError(VfsdError):
    """The mountpoint cannot be used: not a directory, not empty, in use, not permitted."""


class FuseUnavailable(VfsdError):
    """This machine cannot mount FUSE file systems: no ``/dev/fuse``, no rights, no helper."""


class MountBusy(VfsdError):
    """The mount is in use. The message names the processes."""


class NotMounted(VfsdError):
    """There is no vfsd mount at that place."""


class Declined(VfsdError):
    """The question before something that cannot be undone was not answered with yes: nothing is done."""


class Interrupted(VfsdError):
    """The user ended the command while it was at work (Ctrl-C). What it had begun is undone."""


class UncleanEnd(VfsdError):
    """The daemon ended, but could not finish or release everything."""


class DaemonFailed(VfsdError):
    """A detached daemon failed before its mount was ready. *status* is the exit status that it reported."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


_ERRNO: dict[type[VfsdError], int] = {
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
    Declined: 14,
    Interrupted: 130,
}


EXIT_STATUS_MEANING = {
    0: "done",
    1: "an unexpected error",
    2: "wrong usage",
    3: "the store cannot be reached",
    4: "the store refuses: credentials, rights, a replica, an evicting `maxmemory-policy`",
    5: "the store is full, or the daemon is (`--max-memory`)",
    6: "there is no scope of that name",
    7: "the scope is mounted elsewhere",
    8: "the scope is damaged, or its format is newer than this vfsd",
    9: "the mountpoint cannot be used",
    10: "this machine cannot mount FUSE file systems",
    11: "the mount is busy",
    12: "there is no vfsd mount there",
    13: "the daemon ended, but had to leave something unfinished",
    14: "nothing was destroyed: the question was not answered with yes",
    130: "interrupted (Ctrl-C): what the command had begun is undone",
}
"""What each exit status tells a user, as the documentation shows it. A test compares it with the table above."""


def clause(foreign: BaseException | str) -> str:
    """Return the text of a *foreign* exception as a part of a line: another part may follow after a semicolon.

    The exception is one of the system or of a library. Its text may have several lines, and end as a sentence does.
    """
    text = " ".join(str(foreign).split()).rstrip(".?!")
    return text or type(foreign).__name__


def errno_of(error: VfsdError) -> int:
    """Return the errno that a caller of the file system sees for *error*: EIO if the table has no other."""
    if isinstance(error, FsError):
        return error.errno
    return next((_ERRNO[kind] for kind in type(error).__mro__ if kind in _ERRNO), errno.EIO)


def exit_status_of(error: VfsdError) -> int:
    """Return the exit status of a command that ends with *error*."""
    if isinstance(error, DaemonFailed):
        return error.status
    return next(EXIT_STATUS[kind] for kind in type(error).__mro__ if kind in EXIT_STATUS)
