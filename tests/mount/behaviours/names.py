"""Names, paths, rename and rmdir."""

import os
import stat
from collections.abc import Callable
from errno import EBUSY, EEXIST, EINVAL, EISDIR, ENAMETOOLONG, ENOENT, ENOTDIR, ENOTEMPTY
from pathlib import Path

from tests.support.files import names, opened, refused
from tests.support.syscalls import EXCHANGE, NOREPLACE, WHITEOUT, renameat2


def names_of_any_bytes(workdir: Path) -> None:
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
    base = os.fsencode(workdir)
    for name in odd:
        Path(os.fsdecode(os.path.join(base, name))).write_bytes(name)
    assert names(workdir) == odd
    for name in odd:
        assert Path(os.fsdecode(os.path.join(base, name))).read_bytes() == name


def names_of_at_most_255_bytes(workdir: Path) -> None:
    longest, too_long = workdir / ("n" * 255), workdir / ("n" * 256)
    longest.write_bytes(b"content")
    assert names(workdir) == {b"n" * 255}
    umlauts = workdir / ("ä" * 127 + "x")
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
        umlauts.rename(workdir / ("ä" * 128))
    assert len(names(workdir)) == 2


def deep_paths(workdir: Path) -> None:
    """The path is longer than PATH_MAX, so each call covers one level only."""
    fds = [os.open(workdir, os.O_RDONLY | os.O_DIRECTORY)]
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
            (workdir / "/".join([name] * 40)).stat()
        os.unlink("bottom", dir_fd=fds[-1])
        for fd in reversed(fds[:-1]):
            os.rmdir(name, dir_fd=fd)
    finally:
        for fd in fds:
            os.close(fd)
    assert names(workdir) == set()


def a_new_name_replaces_a_negative_lookup(workdir: Path) -> None:
    file = workdir / "file"
    other = workdir / "other"
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


def negative_lookups_and_rename(workdir: Path) -> None:
    first, second = workdir / "first", workdir / "second"
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


def negative_lookups_under_a_renamed_directory(workdir: Path) -> None:
    old, new = workdir / "old", workdir / "new"
    for directory in (old, new):
        directory.mkdir()
    with refused(ENOENT):
        (new / "inner").stat()
    (old / "inner").touch()
    old.rename(new)
    (new / "inner").stat()
    with refused(ENOENT):
        (old / "inner").stat()


def rename_noreplace(workdir: Path) -> None:
    old, new = workdir / "old", workdir / "new"
    old.write_bytes(b"old")
    new.write_bytes(b"new")
    with refused(EEXIST):
        renameat2(old, new, NOREPLACE)
    assert (old.read_bytes(), new.read_bytes()) == (b"old", b"new")
    new.unlink()
    renameat2(old, new, NOREPLACE)
    assert (old.exists(), new.read_bytes()) == (False, b"old")


def rename_exchange(workdir: Path) -> None:
    file, directory = workdir / "file", workdir / "one" / "directory"
    file.write_bytes(b"content")
    directory.mkdir(parents=True)
    (directory / "inner").touch()
    with refused(ENOENT):
        renameat2(file, workdir / "missing", EXCHANGE)
    renameat2(file, directory, EXCHANGE)
    assert directory.read_bytes() == b"content"
    assert names(file) == {b"inner"}
    assert workdir.stat().st_nlink == 4
    assert (workdir / "one").stat().st_nlink == 2
    assert (file / "..").stat().st_ino == workdir.stat().st_ino
    with refused(EINVAL):
        renameat2(workdir / "one", directory, EXCHANGE)


def rename_with_unknown_flags(workdir: Path) -> None:
    old, new = workdir / "old", workdir / "new"
    old.write_bytes(b"old")
    for flags in (8, 128, NOREPLACE | EXCHANGE):
        with refused(EINVAL):
            renameat2(old, new, flags)
    assert names(workdir) == {b"old"}


def rename_errnos(workdir: Path) -> None:
    file, directory, full = workdir / "file", workdir / "directory", workdir / "full"
    file.touch()
    directory.mkdir()
    (full / "inner").mkdir(parents=True)
    for source, target, number in (
        (workdir / "missing", file, ENOENT),
        (file, workdir / "missing" / "file", ENOENT),
        (file, directory, EISDIR),
        (directory, file, ENOTDIR),
        (directory, full, ENOTEMPTY),
        (full, full / "inner" / "deeper", EINVAL),
        (full, full / "inner", EINVAL),
        (file / "below", workdir / "x", ENOTDIR),
        (full / "inner", full, ENOTEMPTY),
    ):
        with refused(number):
            source.rename(target)
    with refused(EBUSY):
        os.rename(f"{directory}/.", workdir / "x")
    directory.rename(full / "inner")
    assert names(workdir) == {b"file", b"full"}


def rename_onto_another_name_of_the_same_file(workdir: Path) -> None:
    first, second = workdir / "first", workdir / "second"
    first.touch()
    os.link(first, second)
    first.rename(second)
    assert names(workdir) == {b"first", b"second"}
    first.rename(first)
    assert first.stat().st_nlink == 2


def rename_moves_directories_and_their_links(workdir: Path) -> None:
    old, new = workdir / "old", workdir / "new"
    (old / "moved" / "inner").mkdir(parents=True)
    new.mkdir()
    (old / "moved").rename(new / "moved")
    assert (old.stat().st_nlink, new.stat().st_nlink, (new / "moved").stat().st_nlink) == (2, 3, 3)
    assert (new / "moved" / "inner").is_dir()


def rmdir_errnos(workdir: Path) -> None:
    file, full = workdir / "file", workdir / "full"
    file.touch()
    full.mkdir()
    (full / "inner").touch()
    for path, number in (
        (workdir / "missing", ENOENT),
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
    assert workdir.stat().st_nlink == 2


def path_errnos(workdir: Path) -> None:
    (workdir / "file").touch()
    with refused(ENOTDIR):
        (workdir / "file" / "below").stat()
    with refused(ENOTDIR):
        os.stat(f"{workdir}/file/")
    with refused(EEXIST):
        (workdir / "file").mkdir()
    with refused(ENOENT):
        (workdir / "missing" / "file").touch()
    with refused(EISDIR), opened(workdir, os.O_WRONLY):
        pass
    with refused(ENOENT):
        os.link(workdir / "missing", workdir / "link")
    with refused(EEXIST):
        os.link(workdir / "file", workdir / "file")


def a_rename_leaves_a_whiteout(workdir: Path) -> None:
    (workdir / "file").write_bytes(b"content")
    (workdir / "taken").touch()
    with refused(EEXIST):
        renameat2(workdir / "file", workdir / "taken", WHITEOUT | NOREPLACE)
    with refused(EINVAL):
        renameat2(workdir / "file", workdir / "taken", WHITEOUT | EXCHANGE)
    renameat2(workdir / "file", workdir / "taken", WHITEOUT)
    assert names(workdir) == {b"file", b"taken"}
    assert (workdir / "taken").read_bytes() == b"content"
    left = (workdir / "file").lstat()
    assert (left.st_mode, left.st_rdev, left.st_nlink) == (stat.S_IFCHR, 0, 1)
