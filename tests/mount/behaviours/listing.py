"""Listings of directories that change during the listing, and of large directories."""

import os
from pathlib import Path

from tests.support.files import names
from tests.support.syscalls import directory_stream

_MANY = 3000


def _fill(workdir: Path, count: int) -> set[bytes]:
    """Make *count* names of one file, which is much faster than *count* files. Return the names."""
    first = workdir / "name-0"
    first.touch()
    for number in range(1, count):
        os.link(first, workdir / f"name-{number}")
    return {b"name-%d" % number for number in range(count)}


def delete_while_listing(workdir: Path) -> None:
    expected = _fill(workdir, _MANY)
    listed = []
    with os.scandir(os.fsencode(workdir)) as entries:
        for entry in entries:
            listed.append(entry.name)
            os.unlink(entry.path)
    assert len(listed) == len(set(listed))
    assert set(listed) == expected
    workdir.rmdir()


def add_while_listing(workdir: Path) -> None:
    """Old entries are listed exactly once, and the listing ends. readdir(3) does not specify more."""
    expected = _fill(workdir, 500)
    listed = []
    with os.scandir(os.fsencode(workdir)) as entries:
        for number, entry in enumerate(entries):
            listed.append(entry.name)
            if number < 500:
                os.link(workdir / "name-0", workdir / f"added-{number}")
    assert len(listed) == len(set(listed))
    assert expected <= set(listed)
    assert len(names(workdir)) == 1000


def every_second_entry_deleted_during_a_listing(workdir: Path) -> None:
    expected = _fill(workdir, 600)
    with directory_stream(workdir) as stream:
        listed = [stream.read() for _ in range(10)]
        gone = sorted(expected - set(listed))[::2]
        for name in gone:
            os.unlink(os.path.join(os.fsencode(workdir), name))
        listed += stream.rest()
    assert len(listed) == len(set(listed))
    assert expected - set(gone) <= set(listed)
    assert names(workdir) == expected - set(gone)


def tell_and_seek(workdir: Path) -> None:
    _fill(workdir, 700)
    with directory_stream(workdir) as stream:
        positions: list[tuple[int, bytes]] = []
        position = stream.tell()
        while (name := stream.read()) is not None:
            positions.append((position, name))
            position = stream.tell()
        for index in (3, 699, 500, 77, 1, 0, 350):
            position, name = positions[index]
            stream.seek(position)
            assert [stream.read() for _ in range(3)] == [name for _, name in positions[index : index + 3]] + [None] * (
                max(0, index + 3 - len(positions))
            )


def rewind_shows_new_entries(workdir: Path) -> None:
    (workdir / "first").touch()
    with directory_stream(workdir) as stream:
        assert set(stream.rest()) == {b".", b"..", b"first"}
        (workdir / "second").touch()
        (workdir / "first").unlink()
        stream.rewind()
        assert set(stream.rest()) == {b".", b"..", b"second"}


def dot_and_dotdot(workdir: Path) -> None:
    inner = workdir / "inner"
    inner.mkdir()
    with directory_stream(inner) as stream:
        assert sorted(stream.rest()) == [b".", b".."]
    assert (inner / ".").stat().st_ino == inner.stat().st_ino
    assert (inner / "..").stat().st_ino == workdir.stat().st_ino
    moved = workdir / "elsewhere"
    moved.mkdir()
    inner.rename(moved / "inner")
    assert (moved / "inner" / "..").stat().st_ino == moved.stat().st_ino


def types_in_listings(workdir: Path) -> None:
    (workdir / "file").touch()
    (workdir / "directory").mkdir()
    (workdir / "link").symlink_to("file")
    os.mkfifo(workdir / "fifo")
    with os.scandir(workdir) as entries:
        found = {
            entry.name: (entry.is_file(follow_symlinks=False), entry.is_dir(), entry.is_symlink(), entry.inode())
            for entry in entries
        }
    assert found == {
        "file": (True, False, False, (workdir / "file").stat().st_ino),
        "directory": (False, True, False, (workdir / "directory").stat().st_ino),
        "link": (False, False, True, (workdir / "link").lstat().st_ino),
        "fifo": (False, False, False, (workdir / "fifo").stat().st_ino),
    }


def listings_show_the_current_names_and_sizes(workdir: Path) -> None:
    for number in range(50):
        file = workdir / f"{number}"
        file.touch()
        assert names(workdir) == {b"%d" % number}
        with os.scandir(workdir) as entries:
            assert [entry.stat().st_size for entry in entries] == [0]
        file.write_bytes(b"grown")
        with os.scandir(workdir) as entries:
            assert [entry.stat().st_size for entry in entries] == [5]
        file.unlink()
        assert names(workdir) == set()


def attributes_from_listings_are_current(workdir: Path) -> None:
    """A listing also delivers attributes to the kernel. They must not be used after a change."""
    for number in range(20):
        (workdir / f"{number}").touch()
    for number in range(20):
        list(os.scandir(workdir))
        (workdir / f"{number}").write_bytes(b"x" * number)
        assert (workdir / f"{number}").stat().st_size == number
        (workdir / f"{number}").chmod(0o600 + number)
        list(os.scandir(workdir))
        assert (workdir / f"{number}").stat().st_mode & 0o777 == 0o600 + number
