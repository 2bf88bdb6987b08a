"""What vfsd guarantees beyond POSIX, and where it differs from tmpfs."""

import os
import time
from errno import ENOTSUP, EOPNOTSUPP
from pathlib import Path

from tests.support.files import MILLISECOND, opened, refused
from tests.support.syscalls import (
    KEEP_SIZE,
    PUNCH_HOLE,
    directory_stream,
    fallocate,
)


def each_write_below_a_skill_changes_the_millisecond_of_the_mtime(workdir: Path) -> None:
    """Where frameworks look for skills they compare milliseconds."""
    (workdir / "SKILL.md").touch()
    file = workdir / "file"
    file.touch()
    times = [file.stat().st_mtime_ns]
    with opened(file, os.O_WRONLY | os.O_APPEND) as fd:
        for _ in range(500):  # enough that several happen within one millisecond, even on a slow machine
            os.write(fd, b"x")
            times.append(os.fstat(fd).st_mtime_ns)
    for in_ms in ([ns // MILLISECOND for ns in times], [(ns + MILLISECOND // 2) // MILLISECOND for ns in times]):
        assert in_ms == sorted(set(in_ms)), "two versions have the same time in milliseconds, truncated or rounded"


def each_write_elsewhere_changes_the_mtime_by_nanoseconds(workdir: Path) -> None:
    """As on every local file system, but also for writes within one tick of the kernel's clock."""
    times = []
    with opened(workdir / "file", os.O_WRONLY | os.O_APPEND | os.O_CREAT) as fd:
        for _ in range(500):
            os.write(fd, b"x")
            times.append(os.fstat(fd).st_mtime_ns)
            assert times[-1] <= time.time_ns(), "ahead of the clock"
    assert times == sorted(set(times))


def each_replacement_by_rename_below_a_skill_changes_the_millisecond_of_its_directory(workdir: Path) -> None:
    (workdir / "SKILL.md").touch()
    times = [workdir.stat().st_mtime_ns // MILLISECOND]
    for number in range(50):
        (workdir / "draft").write_bytes(b"%d" % number)
        (workdir / "draft").rename(workdir / "file")
        times.append(workdir.stat().st_mtime_ns // MILLISECOND)
    assert times == sorted(set(times))


def reading_does_not_change_the_access_time(workdir: Path) -> None:
    (workdir / "file").write_bytes(b"content")
    os.utime(workdir / "file", ns=(1, 2))
    (workdir / "file").read_bytes()
    list(workdir.iterdir())
    assert (workdir / "file").stat().st_atime_ns == 1


def o_tmpfile_is_not_supported(workdir: Path) -> None:
    with refused(EOPNOTSUPP), opened(workdir, os.O_TMPFILE | os.O_RDWR):
        pass


def holes_cannot_be_punched(workdir: Path) -> None:
    with opened(workdir / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"content")
        for mode in (PUNCH_HOLE | KEEP_SIZE, KEEP_SIZE, 0):
            with refused(EOPNOTSUPP):
                fallocate(fd, mode, 0, 4)
        assert os.pread(fd, 10, 0) == b"content"


def extended_attributes_are_not_supported_without_the_option(workdir: Path) -> None:
    (workdir / "file").touch()
    with refused(ENOTSUP):
        os.setxattr(workdir / "file", "user.name", b"value")
    with refused(ENOTSUP):
        os.getxattr(workdir / "file", "user.name")
    with refused(ENOTSUP):
        os.removexattr(workdir / "file", "user.name")


def positions_in_listings_stay_valid_after_deletion(workdir: Path) -> None:
    """A position is the position after an entry, even if this entry has been removed."""
    for number in range(400):
        (workdir / f"{number:03}").touch()
    with directory_stream(workdir) as stream:
        before = [stream.read() for _ in range(200)]
        position = stream.tell()
        rest = stream.rest()
        for name in [name for name in before if name not in {b".", b"..", None}][::3] + rest[::3]:
            os.unlink(os.path.join(os.fsencode(workdir), name or b""))
        stream.seek(position)
        assert stream.rest() == [name for name in rest if name not in set(rest[::3])]


def new_entries_come_last_in_listings(workdir: Path) -> None:
    for number in range(10):
        (workdir / f"{number}").touch()
    (workdir / "0").unlink()
    (workdir / "new").touch()
    (workdir / "5").rename(workdir / "renamed")
    (workdir / "0").touch()
    assert os.listdir(workdir) == [*"12346789", "new", "renamed", "0"]


def entries_added_during_a_listing_are_listed(workdir: Path) -> None:
    for number in range(10):
        (workdir / f"{number}").touch()
    with directory_stream(workdir) as stream:
        listed = [stream.read() for _ in range(3)]
        (workdir / "new").touch()
        listed += stream.rest()
    assert listed == [b".", b"..", *(b"%d" % number for number in range(10)), b"new"]


def an_entry_replaced_during_a_listing_is_listed_once_and_last(workdir: Path) -> None:
    for number in range(600):
        (workdir / f"{number}").touch()
    with directory_stream(workdir) as stream:
        listed = [stream.read() for _ in range(10)]
        (workdir / "500").unlink()
        (workdir / "500").touch()
        listed += stream.rest()
    assert listed == [b".", b"..", *(b"%d" % number for number in range(600) if number != 500), b"500"]


def statvfs_shows_limits_and_use(workdir: Path) -> None:
    before = os.statvfs(workdir)
    assert before.f_namemax == 255
    assert before.f_frsize == before.f_bsize == 4096
    assert 0 < before.f_bavail <= before.f_bfree <= before.f_blocks
    assert 0 < before.f_favail <= before.f_ffree < before.f_files
    assert before.f_blocks * before.f_frsize > 64 << 20
    used = before.f_files - before.f_ffree
    for number in range(10):
        (workdir / f"{number}").touch()
    grown = os.statvfs(workdir)
    assert grown.f_files - grown.f_ffree == used + 10
    (workdir / "large").write_bytes(os.urandom(1 << 20) * 4)
    assert os.statvfs(workdir).f_bavail < before.f_bavail


def blocks_count_the_stored_content(workdir: Path) -> None:
    file = workdir / "file"
    for size, blocks in ((0, 0), (1, 1), (512, 1), (513, 2), (100_000, 196)):
        file.write_bytes(b"x" * size)
        assert file.stat().st_blocks == blocks
        assert file.stat().st_blksize == 4096
    file.write_bytes(bytes(100_000))
    assert file.stat().st_blocks == 0
