"""File handles, and listings that stay consistent while names are added and removed."""

import errno

import pytest

from vfsd.errors import FsError
from vfsd.fuse.handles import DOT, DOTDOT, Handles, Listing
from vfsd.tree.inode import FIRST_COOKIE, Directory, Entry

INO, PARENT = 7, 3


def test_a_handle_means_what_was_opened_until_it_is_closed() -> None:
    handles: Handles[str] = Handles()
    first, second = handles.add("first"), handles.add("second")
    assert (handles[first], handles[second]) == ("first", "second")
    assert handles.pop(first) == "first"
    with pytest.raises(FsError) as caught:
        handles[first]
    assert caught.value.errno == errno.EBADF
    assert handles[second] == "second"


def test_a_number_is_never_used_again() -> None:
    handles: Handles[str] = Handles(first=40)
    numbers = []
    for _ in range(3):
        numbers.append(handles.add("opened"))
        del handles[numbers[-1]]
    assert numbers == [40, 41, 42]


class Shelf:
    """A directory, and what a listing of it shows."""

    def __init__(self, *names: bytes) -> None:
        self.directory = Directory(INO)
        self.directory.parent = PARENT
        self._next_ino = 100
        for name in names:
            self.put(name)
        self.listing = Listing(INO, self.directory)

    def put(self, name: bytes, ino: int | None = None) -> int:
        self._next_ino += 1
        self.directory.put(name, Entry(ino or self._next_ino, self.directory.next_cookie))
        return ino or self._next_ino

    def page(self, cookie: int, most: int = 100) -> list[tuple[bytes, int]]:
        """Return names and cookies of a page; like the kernel it takes *most* entries and then asks for no more."""
        found = []
        for name, _ino, entry_cookie in self.listing.after(cookie):
            found.append((name, entry_cookie))
            if len(found) == most:
                break
        return found

    def names(self, cookie: int, most: int = 100) -> list[bytes]:
        return [name for name, _ in self.page(cookie, most)]


def test_a_listing_begins_with_the_dots() -> None:
    shelf = Shelf(b"a")
    assert list(shelf.listing.after(0)) == [(b".", INO, DOT), (b"..", PARENT, DOTDOT), (b"a", 101, FIRST_COOKIE)]
    assert shelf.names(DOT) == [b"..", b"a"]
    assert shelf.names(DOTDOT) == [b"a"]


def test_a_page_continues_after_its_cookie() -> None:
    shelf = Shelf(b"a", b"b", b"c", b"d")
    first = shelf.page(DOTDOT, 2)
    assert [name for name, _ in first] == [b"a", b"b"]
    assert shelf.names(first[-1][1]) == [b"c", b"d"]
    assert shelf.names(shelf.page(DOTDOT)[-1][1]) == []


def test_a_name_that_is_gone_is_left_out_and_disturbs_no_other() -> None:
    shelf = Shelf(b"a", b"b", b"c", b"d")
    last = shelf.page(DOTDOT, 2)[-1][1]
    shelf.directory.drop(b"a")
    shelf.directory.drop(b"c")
    assert shelf.names(last) == [b"d"]


def test_a_name_that_was_made_again_comes_once_and_last() -> None:
    shelf = Shelf(b"a", b"b", b"c")
    last = shelf.page(DOTDOT, 1)[-1][1]
    shelf.directory.drop(b"b")
    shelf.put(b"b")
    page = shelf.page(last)
    assert [name for name, _ in page] == [b"c"]
    assert shelf.names(page[-1][1]) == [b"b"]


def test_a_new_name_comes_at_the_end() -> None:
    shelf = Shelf(b"b")
    last = shelf.page(DOTDOT)[-1][1]
    shelf.put(b"a")
    assert shelf.names(last) == [b"a"]


def test_an_inode_that_was_listed_is_not_new_under_another_name() -> None:
    shelf = Shelf(b"a")
    (entry,) = list(shelf.listing.after(DOTDOT))
    shelf.directory.drop(b"a")
    shelf.put(b"renamed", entry[1])
    shelf.put(b"new")
    assert shelf.names(entry[2]) == [b"new"]


def test_a_rewound_listing_shows_what_is_there_now() -> None:
    shelf = Shelf(b"a", b"b")
    assert shelf.names(0) == [b".", b"..", b"a", b"b"]
    shelf.directory.drop(b"a")
    shelf.put(b"c")
    assert shelf.names(0) == [b".", b"..", b"b", b"c"]
