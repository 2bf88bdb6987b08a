"""Names, paths, rename and rmdir."""

import os
from collections.abc import Callable
from errno import EBUSY, EEXIST, EINVAL, EISDIR, ENAMETOOLONG, ENOENT, ENOTDIR, ENOTEMPTY
from pathlib import Path

from tests.mount.calls import EXCHANGE, NOREPLACE, names, opened, refused
from tests.support.syscalls import renameat2


def names_of_any_bytes(place: Path) -> None:
    odd = {bytes([byte]) for byte in range(1, 256)} - {b"/", b"."}
    odd |= {
        b"\xff\xfe not unicode",
        b"\xc3\xa4 unicode",
        b" ",
        b"new\nline",
        b"-rf",
        b"*",
        b"...",
        b"a\\b",
        b'"',
        b"%s",
    }
    base = os.fsencode(place)
    for name in odd:
        Path(os.fsdecode(os.path.join(base, name))).write_bytes(name)
    assert names(place) == odd
    for name in odd:
        assert Path(os.fsdecode(os.path.join(base, name))).read_bytes() == name


def names_of_255_bytes_and_no_more(place: Path) -> None:
    longest, too_long = place / ("n" * 255), place / ("n" * 256)
    longest.write_bytes(b"content")
    assert names(place) == {b"n" * 255}
    umlauts = place / ("ä" * 127 + "x")
    umlauts.mkdir()
    calls: tuple[Callable[[Path], object], ...] = (
        *(Path.lstat, Path.mkdir, Path.touch, Path.unlink, Path.rmdir, os.mkfifo),
        lambda path: os.rename(longest, path),
        lambda path: os.link(longest, path),
    )
    for call in calls:
        with refused(ENAMETOOLONG):
            call(too_long)
    with refused(ENAMETOOLONG):
        too_long.symlink_to("target")
    with refused(ENAMETOOLONG):
        umlauts.rename(place / ("ä" * 128))
    assert len(names(place)) == 2


def deep_paths(place: Path) -> None:
    """Deeper than PATH_MAX allows in one call: step by step."""
    fds = [os.open(place, os.O_RDONLY | os.O_DIRECTORY)]
    name = "d" * 200
    try:
        for _ in range(40):
            os.mkdir(name, dir_fd=fds[-1])
            fds.append(os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fds[-1]))
        bottom = os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=fds[-1])
        os.write(bottom, b"content")
        os.close(bottom)
        assert os.stat("bottom", dir_fd=fds[-1]).st_size == 7
        with refused(ENAMETOOLONG):
            (place / "/".join([name] * 40)).stat()
        os.unlink("bottom", dir_fd=fds[-1])
        for fd in reversed(fds[:-1]):
            os.rmdir(name, dir_fd=fd)
    finally:
        for fd in fds:
            os.close(fd)
    assert names(place) == set()


def negative_lookups_never_outlive_a_name(place: Path) -> None:
    file = place / "file"
    other = place / "other"
    other.touch()
    makers: tuple[Callable[[Path], object], ...] = (
        *(Path.touch, Path.mkdir, os.mkfifo),
        lambda path: path.symlink_to("x"),
        lambda path: os.link(other, path),
    )
    for make in makers:
        for _ in range(3):
            with refused(ENOENT):
                file.lstat()
            make(file)
            file.lstat()
            (file.rmdir if file.is_dir() else file.unlink)()
            with refused(ENOENT):
                file.lstat()
            with refused(ENOENT):
                file.open()


def negative_lookups_and_rename(place: Path) -> None:
    first, second = place / "first", place / "second"
    first.write_bytes(b"content")
    for _ in range(5):
        with refused(ENOENT):
            second.stat()
        first.rename(second)
        assert second.read_bytes() == b"content"
        with refused(ENOENT):
            first.stat()
        second.rename(first)
        assert first.read_bytes() == b"content"


def negative_lookups_under_a_renamed_directory(place: Path) -> None:
    old, new = place / "old", place / "new"
    for directory in (old, new):
        directory.mkdir()
    with refused(ENOENT):
        (new / "inner").stat()
    (old / "inner").touch()
    old.rename(new)
    (new / "inner").stat()
    with refused(ENOENT):
        (old / "inner").stat()


def rename_noreplace(place: Path) -> None:
    old, new = place / "old", place / "new"
    old.write_bytes(b"old")
    new.write_bytes(b"new")
    with refused(EEXIST):
        renameat2(old, new, NOREPLACE)
    assert (old.read_bytes(), new.read_bytes()) == (b"old", b"new")
    new.unlink()
    renameat2(old, new, NOREPLACE)
    assert (old.exists(), new.read_bytes()) == (False, b"old")


def rename_exchange(place: Path) -> None:
    file, directory = place / "file", place / "one" / "directory"
    file.write_bytes(b"content")
    directory.mkdir(parents=True)
    (directory / "inner").touch()
    with refused(ENOENT):
        renameat2(file, place / "missing", EXCHANGE)
    renameat2(file, directory, EXCHANGE)
    assert directory.read_bytes() == b"content"
    assert names(file) == {b"inner"}
    assert place.stat().st_nlink == 4
    assert (place / "one").stat().st_nlink == 2
    assert (file / "..").stat().st_ino == place.stat().st_ino
    with refused(EINVAL):
        renameat2(place / "one", directory, EXCHANGE)


def rename_with_unknown_flags(place: Path) -> None:
    old, new = place / "old", place / "new"
    old.write_bytes(b"old")
    for flags in (8, 128, NOREPLACE | EXCHANGE):
        with refused(EINVAL):
            renameat2(old, new, flags)
    assert names(place) == {b"old"}


def rename_errnos(place: Path) -> None:
    file, directory, full = place / "file", place / "directory", place / "full"
    file.touch()
    directory.mkdir()
    (full / "inner").mkdir(parents=True)
    for source, target, number in (
        (place / "missing", file, ENOENT),
        (file, place / "missing" / "file", ENOENT),
        (file, directory, EISDIR),
        (directory, file, ENOTDIR),
        (directory, full, ENOTEMPTY),
        (full, full / "inner" / "deeper", EINVAL),
        (full, full / "inner", EINVAL),
        (file / "below", place / "x", ENOTDIR),
        (full / "inner", full, ENOTEMPTY),
    ):
        with refused(number):
            source.rename(target)
    with refused(EBUSY):
        os.rename(f"{directory}/.", place / "x")
    directory.rename(full / "inner")
    assert names(place) == {b"file", b"full"}


def rename_onto_another_name_of_the_same_file(place: Path) -> None:
    first, second = place / "first", place / "second"
    first.touch()
    os.link(first, second)
    first.rename(second)
    assert names(place) == {b"first", b"second"}
    first.rename(first)
    assert first.stat().st_nlink == 2


def rename_moves_directories_and_their_links(place: Path) -> None:
    old, new = place / "old", place / "new"
    (old / "moved" / "inner").mkdir(parents=True)
    new.mkdir()
    (old / "moved").rename(new / "moved")
    assert (old.stat().st_nlink, new.stat().st_nlink, (new / "moved").stat().st_nlink) == (2, 3, 3)
    assert (new / "moved" / "inner").is_dir()


def rmdir_errnos(place: Path) -> None:
    file, full = place / "file", place / "full"
    file.touch()
    full.mkdir()
    (full / "inner").touch()
    for path, number in (
        (place / "missing", ENOENT),
        (file, ENOTDIR),
        (full, ENOTEMPTY),
        (full / "..", ENOTEMPTY),
    ):
        with refused(number):
            path.rmdir()
    with refused(EINVAL):
        os.rmdir(f"{full}/.")
    with refused(EISDIR):
        full.unlink()
    (full / "inner").unlink()
    full.rmdir()
    assert place.stat().st_nlink == 2


def path_errnos(place: Path) -> None:
    (place / "file").touch()
    with refused(ENOTDIR):
        (place / "file" / "below").stat()
    with refused(ENOTDIR):
        os.stat(f"{place}/file/")
    with refused(EEXIST):
        (place / "file").mkdir()
    with refused(ENOENT):
        (place / "missing" / "file").touch()
    with refused(EISDIR), opened(place, os.O_WRONLY):
        pass
    with refused(ENOENT):
        os.link(place / "missing", place / "link")
    with refused(EEXIST):
        os.link(place / "file", place / "file")
