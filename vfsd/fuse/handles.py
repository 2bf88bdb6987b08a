"""What is open: file handles by number, and listings of directories that stay steady while names come and go."""

import errno
from bisect import bisect_right
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from vfsd.errors import FsError
from vfsd.tree.inode import FIRST_COOKIE, Directory

T = TypeVar("T")


class OpenFile(NamedTuple):
    """An open file.

    *truncated* says that this open emptied it, and so must see that stored; *direct* that it has O_DIRECT.
    """

    ino: int
    truncated: bool
    direct: bool


DOT, DOTDOT = 1, 2
"""Cookies of the two entries that every directory has."""


class Handles(Generic[T]):
    """Things that are open, by the number the kernel gives back."""

    def __init__(self) -> None:
        self._open: dict[int, T] = {}
        self._next = 1

    def add(self, thing: T) -> int:
        """Return a new handle for *thing*."""
        number = self._next
        self._next += 1
        self._open[number] = thing
        return number

    def get(self, number: int) -> T:
        """Return what *number* stands for; EBADF if nothing."""
        try:
            return self._open[number]
        except KeyError:
            raise FsError(errno.EBADF) from None

    def close(self, number: int) -> None:
        """Forget *number*."""
        self._open.pop(number, None)

    def __len__(self) -> int:
        return len(self._open)


class Listing:
    """An open directory. Pages continue after a cookie: what vanished is left out, what is new comes at the end.

    A name is not new if its inode has been listed under another: else whoever renames each file that a listing shows
    would never see its end.
    """

    def __init__(self, ino: int, directory: Directory) -> None:
        self.ino = ino
        self._directory = directory
        self._names: list[bytes] = []
        self._cookies: list[int] = []
        self._listed: set[int] = set()

    def after(self, cookie: int) -> Iterator[tuple[bytes, int, int]]:
        """Yield name, inode number and cookie of the entries with a greater cookie, in order."""
        if cookie < FIRST_COOKIE or not self._cookies:
            self._begin()
            yield from [(b".", self.ino, DOT), (b"..", self._directory.parent, DOTDOT)][cookie:]
        elif cookie >= self._cookies[-1]:
            self._continue()
        entries = self._directory.entries
        for index in range(bisect_right(self._cookies, cookie), len(self._cookies)):
            name = self._names[index]
            entry = entries.get(name)
            if entry is not None and entry.cookie == self._cookies[index]:
                yield name, entry.ino, entry.cookie
                self._listed.add(entry.ino)  # reached once the entry has been taken

    def _begin(self) -> None:
        entries = self._directory.entries
        self._names = list(entries)
        self._cookies = [entry.cookie for entry in entries.values()]
        self._listed.clear()

    def _continue(self) -> None:
        """Append the entries made since the last page: all of them have greater cookies."""
        newer = list(self._directory.newer_than(self._cookies[-1]))
        for name, entry in reversed(newer):
            if entry.ino not in self._listed:
                self._names.append(name)
                self._cookies.append(entry.cookie)
