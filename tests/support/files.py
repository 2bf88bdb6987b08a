"""Helpers for tests that work on files: expected errors, open files, the caller's identity, modes and times."""

import errno
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534
SECOND = 1_000_000_000
"""In nanoseconds."""
MILLISECOND = 1_000_000
"""In nanoseconds."""

_CLOCK_REALTIME_COARSE = 5


@contextmanager
def refused(number: int) -> Iterator[None]:
    """Expect an OSError with errno *number*."""
    with pytest.raises(OSError) as caught:  # noqa: PT011 (the errno is compared below)
        yield
    assert errno.errorcode[caught.value.errno or 0] == errno.errorcode[number]


@contextmanager
def opened(path: Path, flags: int, mode: int = 0o666) -> Iterator[int]:
    """Open *path*, yield the file descriptor, and close it afterwards."""
    fd = os.open(path, flags, mode)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def unprivileged(uid: int = NOBODY, gid: int = NOBODY, groups: Sequence[int] = ()) -> Iterator[None]:
    """Run the block as user *uid* with group *gid* and the supplementary *groups*.

    This user may have no access to the parents of the test's directory: use ``dir_fd``.
    """
    own_groups, own_gid = os.getgroups(), os.getegid()
    os.setgroups(groups)
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(own_gid)
        os.setgroups(own_groups)


@contextmanager
def with_umask(umask: int) -> Iterator[None]:
    """Run the block with *umask*."""
    before = os.umask(umask)
    try:
        yield
    finally:
        os.umask(before)


def permissions(path: Path) -> int:
    """Return the twelve mode bits of *path*. Do not follow a symbolic link."""
    return stat.S_IMODE(path.lstat().st_mode)


def names(path: Path) -> set[bytes]:
    """Return the names in the directory *path*."""
    return set(os.listdir(os.fsencode(path)))


def wait_for_clock_tick() -> int:
    """Return a time T (ns): the timestamps of earlier changes are at most T, those of later changes are greater.

    A file system may take its times from the kernel's coarse clock, which advances once per jiffy. So this waits until
    the coarse clock has passed T.
    """
    passed = time.time_ns()
    while time.clock_gettime_ns(_CLOCK_REALTIME_COARSE) <= passed:
        time.sleep(0.001)  # the interval between two readings of the clock
    return passed
