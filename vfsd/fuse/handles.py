"""What is open: file handles by number, and directory listings that stay steady while names come and go."""

import errno
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, NoReturn, TypeVar

from vfsd.errors import FsError
from vfsd.tree.inode import FIRST_COOKIE, Directory

T = TypeVar("T")


class OpenFile(NamedTuple):
    """An open file.

    *truncated* says that this open emptied it, and must see that stored. *direct* says that it has O_DIRECT.
    """

    ino: int
    truncated: bool
    direct: bool


DOT, DOTDOT = 1, 2
"""Cookies of the two entries that every directory has."""


class Handles(dict[int, T]):
    """What is open, by the number that the kernel gives back. A number that is not open: EBADF.

    It is a dict, because every read and write looks a handle up. Numbers begin at *first* and are never used again.
    """

    def __init__(self, first: int = 1) -> None:
        super().__init__()
        self._next = first

    def add(self, opened: T) -> int:
        """Return a new handle for *opened*."""
        number = self._next
        self._next += 1
        self[number] = opened
        return number

    def __missing__(self, number: int) -> NoReturn:
        raise FsError(errno.EBADF)


class Listing:
    """An open directory. A page continues after a cookie: names that are gone are left out, new ones come at the end.

    A name is not new if its inode was listed under another name: otherwise a program that renames every file it is
    shown would never reach the end.
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
                self._listed.add(entry.ino)  # reached only when the caller has taken the entry and asks for more

    def _begin(self) -> None:
        entries = self._directory.entries
        self._names = list(entries)
        self._cookies = [entry.cookie for entry in entries.values()]
        self._listed.clear()

    def _continue(self) -> None:
        """Append the entries made since the last page. All of them have greater cookies."""
        newer = list(self._directory.newer_than(self._cookies[-1]))
        for name, entry in reversed(newer):
            if entry.ino not in self._listed:
                self._names.append(name)
                self._cookies.append(entry.cookie)
