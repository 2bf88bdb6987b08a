"""Directories that are listed while they change, and large ones."""

import os
from pathlib import Path

from tests.mount.calls import names, streaming

_MANY = 3000


def _fill(place: Path, count: int) -> set[bytes]:
    """Make *count* names of one file, which is much quicker than as many files."""
    first = place / "name-0"
    first.touch()
    for number in range(1, count):
        os.link(first, place / f"name-{number}")
    return {b"name-%d" % number for number in range(count)}


def delete_while_listing(place: Path) -> None:
    expected = _fill(place, _MANY)
    seen = []
    with os.scandir(os.fsencode(place)) as entries:
        for entry in entries:
            seen.append(entry.name)
            os.unlink(entry.path)
    assert len(seen) == len(set(seen))
    assert set(seen) == expected
    place.rmdir()


def add_while_listing(place: Path) -> None:
    """What was there is listed exactly once, and the listing ends (readdir(3) leaves the rest open)."""
    expected = _fill(place, 500)
    seen = []
    with os.scandir(os.fsencode(place)) as entries:
        for number, entry in enumerate(entries):
            seen.append(entry.name)
            if number < 500:
                os.link(place / "name-0", place / f"added-{number}")
    assert len(seen) == len(set(seen))
    assert expected <= set(seen)
    assert len(names(place)) == 1000


def every_second_deleted_by_another_listing(place: Path) -> None:
    expected = _fill(place, 600)
    with streaming(place) as stream:
        seen = [stream.read() for _ in range(10)]
        gone = sorted(expected - set(seen))[::2]
        for name in gone:
            os.unlink(os.path.join(os.fsencode(place), name))
        seen += stream.rest()
    assert len(seen) == len(set(seen))
    assert expected - set(gone) <= set(seen)
    assert names(place) == expected - set(gone)


def tell_and_seek(place: Path) -> None:
    _fill(place, 700)
    with streaming(place) as stream:
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


def rewind_sees_what_is_new(place: Path) -> None:
    (place / "first").touch()
    with streaming(place) as stream:
        assert set(stream.rest()) == {b".", b"..", b"first"}
        (place / "second").touch()
        (place / "first").unlink()
        stream.rewind()
        assert set(stream.rest()) == {b".", b"..", b"second"}


def dot_and_dotdot(place: Path) -> None:
    inner = place / "inner"
    inner.mkdir()
    with streaming(inner) as stream:
        assert sorted(stream.rest()) == [b".", b".."]
    assert (inner / ".").stat().st_ino == inner.stat().st_ino
    assert (inner / "..").stat().st_ino == place.stat().st_ino
    moved = place / "elsewhere"
    moved.mkdir()
    inner.rename(moved / "inner")
    assert (moved / "inner" / "..").stat().st_ino == moved.stat().st_ino


def types_in_listings(place: Path) -> None:
    (place / "file").touch()
    (place / "directory").mkdir()
    (place / "link").symlink_to("file")
    os.mkfifo(place / "fifo")
    with os.scandir(place) as entries:
        found = {
            entry.name: (entry.is_file(follow_symlinks=False), entry.is_dir(), entry.is_symlink(), entry.inode())
            for entry in entries
        }
    assert found == {
        "file": (True, False, False, (place / "file").stat().st_ino),
        "directory": (False, True, False, (place / "directory").stat().st_ino),
        "link": (False, False, True, (place / "link").lstat().st_ino),
        "fifo": (False, False, False, (place / "fifo").stat().st_ino),
    }


def no_stale_names(place: Path) -> None:
    for number in range(50):
        file = place / f"{number}"
        file.touch()
        assert names(place) == {b"%d" % number}
        with os.scandir(place) as entries:
            assert [entry.stat().st_size for entry in entries] == [0]
        file.write_bytes(b"grown")
        with os.scandir(place) as entries:
            assert [entry.stat().st_size for entry in entries] == [5]
        file.unlink()
        assert names(place) == set()


def attributes_in_listings_are_fresh(place: Path) -> None:
    """A listing brings attributes along: they must not outlive a change."""
    for number in range(20):
        (place / f"{number}").touch()
    for number in range(20):
        list(os.scandir(place))
        (place / f"{number}").write_bytes(b"x" * number)
        assert (place / f"{number}").stat().st_size == number
        (place / f"{number}").chmod(0o600 + number)
        list(os.scandir(place))
        assert (place / f"{number}").stat().st_mode & 0o777 == 0o600 + number
