"""Opening files in a directory that others may change at the same time.

Whoever may write to the directory could replace a file by a link to something that only this process may read, by a
FIFO that never ends, or by a device. So each name is opened by itself, below the descriptor of its directory, and
nothing is followed by the kernel. What was opened is examined before it is read. Reading has limits.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from vfsd.tree.change import PERMISSIONS

_LINKS_MAX = 40
"""Most symbolic links that are followed one after another; the kernel has the same limit."""
_PIECE = 1 << 20
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
"""Opens anything without reading it: a FIFO does not wait, and a device does nothing (:manpage:`open(2)`)."""


class TooMuch(Exception):
    """A source is larger than what may be seeded."""


class Budget:
    """How much one source may still hold: 1 GiB of content, and 1,000,000 names. Seeds live in memory."""

    def __init__(self) -> None:
        self._bytes = 1 << 30
        self._names = 1_000_000

    def take_name(self) -> None:
        """Count one more file. Raises TooMuch."""
        self._names -= 1
        if self._names < 0:
            raise TooMuch("more than 1,000,000 files")

    def check(self, size: int) -> None:
        """Raise TooMuch if *size* bytes more would be too many."""
        if size > self._bytes:
            raise TooMuch("more than 1 GiB of content; copy it into the mount instead")

    def take(self, size: int) -> None:
        """Count *size* bytes more. Raises TooMuch."""
        self.check(size)
        self._bytes -= size


class Opened:
    """A file of any kind, opened to look at it. *descriptor* cannot be read from (O_PATH)."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._info = os.fstat(descriptor)
        self.identity = (self._info.st_dev, self._info.st_ino)
        self.owner = self._info.st_uid
        permissions = self._info.st_mode & PERMISSIONS
        if self.owner != os.geteuid():
            permissions &= ~(stat.S_ISUID | stat.S_ISGID)  # the seed will belong to this user, and run as him
        self.mode = stat.S_IFMT(self._info.st_mode) | permissions
        """Type and permissions. A file of another user has neither set-user-ID nor set-group-ID."""

    def names(self) -> list[bytes]:
        """Return the names in a directory, sorted. Raises OSError."""
        with self._readable(os.O_DIRECTORY) as descriptor:
            return sorted(os.fsencode(name) for name in os.listdir(descriptor))  # noqa: PTH208 (pathlib knows no descriptors)

    def link_target(self) -> bytes:
        """Return the target of a symbolic link, exactly as the link has it."""
        return os.readlink(b"", dir_fd=self.descriptor)

    def pieces(self, budget: Budget) -> Iterator[bytes]:
        """Yield the content of a regular file. Raises TooMuch, OSError."""
        budget.check(self._info.st_size)
        with self._readable(0) as descriptor:
            while piece := os.read(descriptor, _PIECE):
                budget.take(len(piece))
                yield piece

    @contextmanager
    def _readable(self, flags: int) -> Iterator[int]:
        descriptor = os.open(
            f"/proc/self/fd/{self.descriptor}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags
        )  # the same inode, whatever has its name by now
        try:
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def opened_source(path: str) -> Iterator[Opened]:
    """Open what was named. Links on the way are followed, and a link at its end as by :func:`opened_inside`.

    So somebody who may write to the directory of *path* cannot put a link to what only this process may read in its
    place. Raises OSError.
    """
    directory, name = os.path.split(path)
    parent = os.open(directory or ".", os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        found = _followed(parent, os.fsencode(name))
    finally:
        os.close(parent)
    yield from _closing(found)


@contextmanager
def opened_inside(directory: Opened, name: bytes, *, links: bool) -> Iterator[Opened]:
    """Open *name* in *directory*. With *links* a symbolic link is opened itself, otherwise its target. Raises OSError.

    A link of another user (not root) is followed only to what belongs to that user: he could have copied that.
    """
    yield from _closing(_look(name, directory.descriptor) if links else _followed(directory.descriptor, name))


def _closing(descriptor: int) -> Iterator[Opened]:
    try:
        yield Opened(descriptor)
    finally:
        os.close(descriptor)


def _look(name: bytes, directory: int) -> int:
    return os.open(name, _LOOK, dir_fd=directory)


def _followed(directory: int, name: bytes) -> int:
    """Return a descriptor of what *name* leads to from *directory*, through symbolic links one at a time."""
    place = _Place(_look(b".", directory))
    try:
        place.follow(name)
    except BaseException:
        os.close(place.descriptor)
        raise
    return place.descriptor


class _Place:
    """Where following a path has come to: *descriptor* is the last thing found that is no link."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._waiting: list[bytes] = []  # in reverse order: the next name is the last item
        self._links = 0
        self._strangers: set[int] = set()

    def follow(self, path: bytes) -> None:
        """Follow *path* from here. Raises OSError."""
        self._waiting = [path]
        while self._waiting:
            found = _look(self._waiting.pop() or b".", self.descriptor)
            info = os.fstat(found)
            if stat.S_ISLNK(info.st_mode):
                self._turn_to_target(found, info.st_uid)
            else:
                self._move(found)
        if self._strangers - {os.fstat(self.descriptor).st_uid}:
            raise OSError(errno.EPERM, "a link of another user leads to what is not his")

    def _turn_to_target(self, link: int, owner: int) -> None:
        """Go on with the target of *link*, which belongs to *owner*."""
        try:
            target = os.readlink(b"", dir_fd=link)
        finally:
            os.close(link)
        self._links += 1
        if self._links > _LINKS_MAX:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        self._strangers |= {owner} - {0, os.geteuid()}
        self._waiting += reversed(target.split(b"/"))
        if target.startswith(b"/"):
            self._move(_look(b"/", self.descriptor))

    def _move(self, descriptor: int) -> None:
        os.close(self.descriptor)
        self.descriptor = descriptor
