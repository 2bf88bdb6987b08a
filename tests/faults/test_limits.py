"""Limits of a scope and of its daemon's memory: a change beyond them is refused before it is sent. df shows them."""

import os
from functools import partial
from pathlib import Path

from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.outcomes import DONE, outcome, write
from tests.support.servers import RedisServer
from tests.support.store_comparison import assert_store_matches, commit_count

MIB = 1 << 20


def _free(path: Path) -> tuple[int, int]:
    """Return total and free bytes, as ``df`` does."""
    free = os.statvfs(path)
    return free.f_blocks * free.f_frsize, free.f_bavail * free.f_frsize


def test_bytes_of_a_scope(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url, "--max-bytes", "2M")
    file = mounted.path / "file"
    file.write_bytes(os.urandom(MIB))
    assert _free(mounted.path) == (2 * MIB, MIB)
    (mounted.path / "other").write_bytes(b"x")
    before, count = assert_store_matches(mounted), commit_count(server, mounted.scope)
    assert outcome(lambda: write(file, os.urandom(MIB), MIB)) == "ENOSPC"
    assert commit_count(server, mounted.scope) == count
    assert assert_store_matches(mounted) == before
    (mounted.path / "other").unlink()
    wait_until(lambda: _free(mounted.path)[1] == MIB, "the space to be free again")
    write(file, os.urandom(MIB), MIB)
    assert _free(mounted.path) == (2 * MIB, 0)
    assert outcome(lambda: write(file, b"more", 2 * MIB)) == "ENOSPC"
    write(file, os.urandom(1000))  # needs no additional space
    file.rename(mounted.path / "renamed")
    os.truncate(mounted.path / "renamed", MIB)
    write(mounted.path / "renamed", os.urandom(MIB), MIB)
    (mounted.path / "renamed").unlink()
    wait_until(lambda: _free(mounted.path) == (2 * MIB, 2 * MIB), "the space to be free again")
    assert_store_matches(mounted)


def test_files_of_a_scope(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url, "--max-files", "4")  # the root directory is one
    for name in ("a", "b", "c"):
        (mounted.path / name).touch()
    free = os.statvfs(mounted.path)
    assert (free.f_files, free.f_ffree) == (4, 0)
    count = commit_count(server, mounted.scope)
    assert outcome((mounted.path / "d").touch) == "ENOSPC"
    assert outcome((mounted.path / "d").mkdir) == "ENOSPC"
    assert outcome(lambda: (mounted.path / "d").symlink_to("a")) == "ENOSPC"
    assert commit_count(server, mounted.scope) == count
    os.link(mounted.path / "a", mounted.path / "d")  # another name, but no other file
    write(mounted.path / "a", b"content")
    (mounted.path / "b").unlink()
    wait_until(lambda: os.statvfs(mounted.path).f_ffree == 1, "the kernel to forget what was removed")
    assert outcome((mounted.path / "e").mkdir) == DONE
    assert_store_matches(mounted)


def test_bytes_of_a_file(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url, "--max-file-bytes", "64K")
    file = mounted.path / "file"
    file.write_bytes(bytes(65536))
    count = commit_count(server, mounted.scope)
    assert outcome(lambda: write(file, b"x", 65536)) == "EFBIG"
    assert outcome(lambda: os.truncate(file, 65537)) == "EFBIG"
    assert commit_count(server, mounted.scope) == count
    write(file, b"x", 65535)
    (mounted.path / "another").write_bytes(bytes(65536))
    assert_store_matches(mounted)


def test_limits_stay_with_the_scope_and_are_changed_at_a_mount(server: RedisServer, mount: MountFactory) -> None:
    first = mount(server.url, "--max-file-bytes", "10", "--max-files", "3")
    (first.path / "file").write_bytes(bytes(10))
    assert first.stop() == 0
    second = mount(server.url, scope=first.scope)
    assert _limits_hold(second) == ("EFBIG", 3)
    assert second.stop() == 0
    third = mount(server.url, "--max-file-bytes", "0", scope=first.scope)
    assert _limits_hold(third) == (DONE, 3)
    assert third.stop() == 0


def _limits_hold(mounted: Mounted) -> tuple[str, int]:
    return outcome(lambda: write(mounted.path / "file", bytes(11))), os.statvfs(mounted.path).f_files


def test_memory_of_the_daemon(server: RedisServer, mount: MountFactory) -> None:
    """Writing fails with ENOSPC before the daemon dies. Files stay readable, and removing some makes space."""
    small = mount(server.url)
    limit = _resident(small) + 24 * MIB
    assert small.stop() == 0
    mounted = mount(server.url, "--max-memory", str(limit), scope=small.scope)
    block = os.urandom(MIB)
    written = 0
    while outcome(partial((mounted.path / f"file{written}").write_bytes, block)) == DONE:
        written += 1
        assert written < 100, "the limit does not hold"
    assert written > 5
    assert _resident(mounted) < limit + 16 * MIB
    assert outcome((mounted.path / "directory").mkdir) in {DONE, "ENOSPC"}
    assert (mounted.path / "file0").read_bytes() == block
    assert_store_matches(mounted)
    for number in range(written):
        (mounted.path / f"file{number}").unlink()
    assert outcome(lambda: (mounted.path / "again").write_bytes(block)) == DONE


def _resident(mounted: Mounted) -> int:
    pages = int(Path(f"/proc/{mounted.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
