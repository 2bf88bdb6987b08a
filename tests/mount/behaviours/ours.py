"""What vfsd promises beyond POSIX, or instead of what another file system does."""

import os
from errno import EINVAL, ENOTSUP, EOPNOTSUPP
from pathlib import Path

from tests.mount.calls import (
    KEEP_SIZE,
    MILLISECOND,
    PUNCH_HOLE,
    WHITEOUT,
    fallocate,
    names,
    opened,
    refused,
    streaming,
)
from tests.support.syscalls import renameat2


def every_write_that_was_looked_for_moves_the_millisecond(place: Path) -> None:
    file = place / "file"
    file.touch()
    seen = [file.stat().st_mtime_ns]
    with opened(file, os.O_WRONLY | os.O_APPEND) as fd:
        for _ in range(500):  # so many that some fall into one millisecond, however slow the machine
            os.write(fd, b"x")
            seen.append(os.fstat(fd).st_mtime_ns)
    for shown in ([ns // MILLISECOND for ns in seen], [(ns + MILLISECOND // 2) // MILLISECOND for ns in seen]):
        assert shown == sorted(set(shown)), "cut off to the millisecond, or rounded, two versions look alike"


def every_new_version_by_rename_moves_the_millisecond_of_its_directory(place: Path) -> None:
    seen = [place.stat().st_mtime_ns // MILLISECOND]
    for number in range(50):
        (place / "draft").write_bytes(b"%d" % number)
        (place / "draft").rename(place / "file")
        seen.append(place.stat().st_mtime_ns // MILLISECOND)
    assert seen == sorted(set(seen))


def reading_leaves_the_access_time(place: Path) -> None:
    (place / "file").write_bytes(b"content")
    os.utime(place / "file", ns=(1, 2))
    (place / "file").read_bytes()
    list(place.iterdir())
    assert (place / "file").stat().st_atime_ns == 1


def o_tmpfile_is_not_supported(place: Path) -> None:
    with refused(EOPNOTSUPP), opened(place, os.O_TMPFILE | os.O_RDWR):
        pass


def holes_cannot_be_punched(place: Path) -> None:
    with opened(place / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"content")
        for mode in (PUNCH_HOLE | KEEP_SIZE, KEEP_SIZE, 0):
            with refused(EOPNOTSUPP):
                fallocate(fd, mode, 0, 4)
        assert os.pread(fd, 10, 0) == b"content"


def whiteouts_are_refused(place: Path) -> None:
    (place / "file").touch()
    with refused(EINVAL):
        renameat2(place / "file", place / "other", WHITEOUT)
    assert names(place) == {b"file"}


def extended_attributes_are_not_supported_unless_asked_for(place: Path) -> None:
    (place / "file").touch()
    with refused(ENOTSUP):
        os.setxattr(place / "file", "user.name", b"value")
    with refused(ENOTSUP):
        os.getxattr(place / "file", "user.name")
    with refused(ENOTSUP):
        os.removexattr(place / "file", "user.name")


def positions_in_listings_outlive_deletion(place: Path) -> None:
    """A place in a listing is a place after what was there, even when that has gone."""
    for number in range(400):
        (place / f"{number:03}").touch()
    with streaming(place) as stream:
        before = [stream.read() for _ in range(200)]
        position = stream.tell()
        rest = stream.rest()
        for name in [name for name in before if name not in {b".", b"..", None}][::3] + rest[::3]:
            os.unlink(os.path.join(os.fsencode(place), name or b""))
        stream.seek(position)
        assert stream.rest() == [name for name in rest if name not in set(rest[::3])]


def what_is_new_comes_last_in_listings(place: Path) -> None:
    for number in range(10):
        (place / f"{number}").touch()
    (place / "0").unlink()
    (place / "new").touch()
    (place / "5").rename(place / "renamed")
    (place / "0").touch()
    assert os.listdir(place) == [*"12346789", "new", "renamed", "0"]


def what_is_added_while_listing_is_listed(place: Path) -> None:
    for number in range(10):
        (place / f"{number}").touch()
    with streaming(place) as stream:
        seen = [stream.read() for _ in range(3)]
        (place / "new").touch()
        seen += stream.rest()
    assert seen == [b".", b"..", *(b"%d" % number for number in range(10)), b"new"]


def what_is_made_again_while_listing_is_listed_once_and_last(place: Path) -> None:
    for number in range(600):
        (place / f"{number}").touch()
    with streaming(place) as stream:
        seen = [stream.read() for _ in range(10)]
        (place / "500").unlink()
        (place / "500").touch()
        seen += stream.rest()
    assert seen == [b".", b"..", *(b"%d" % number for number in range(600) if number != 500), b"500"]


def statvfs_means_something(place: Path) -> None:
    room = os.statvfs(place)
    assert room.f_namemax == 255
    assert room.f_frsize == room.f_bsize == 4096
    assert 0 < room.f_bavail <= room.f_bfree <= room.f_blocks
    assert 0 < room.f_favail <= room.f_ffree < room.f_files
    assert room.f_blocks * room.f_frsize > 64 << 20
    used = room.f_files - room.f_ffree
    for number in range(10):
        (place / f"{number}").touch()
    grown = os.statvfs(place)
    assert grown.f_files - grown.f_ffree == used + 10
    (place / "large").write_bytes(os.urandom(1 << 20) * 4)
    assert os.statvfs(place).f_bavail < room.f_bavail


def blocks_are_what_the_content_takes(place: Path) -> None:
    file = place / "file"
    for size, blocks in ((0, 0), (1, 1), (512, 1), (513, 2), (100_000, 196)):
        file.write_bytes(b"x" * size)
        assert file.stat().st_blocks == blocks
        assert file.stat().st_blksize == 4096
    file.write_bytes(bytes(100_000))
    assert file.stat().st_blocks == 0
