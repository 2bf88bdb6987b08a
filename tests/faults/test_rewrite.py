"""A rewrite by open(O_TRUNC), write, close is one commit: a crash in between leaves the old file, not an empty one."""

import os
from pathlib import Path

from tests.faults.agreement import assert_agreement, commits, stored
from tests.faults.calls import OUTAGE, outcome, wait_until_writable
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.servers import RedisServer

OLD, NEW = b"old content" * 5000, b"new content"


def _truncated(mounted: Mounted) -> tuple[Path, int]:
    """Return a file that has just been opened with O_TRUNC, and the descriptor."""
    file = mounted.path / "file"
    file.write_bytes(OLD)
    return file, os.open(file, os.O_WRONLY | os.O_TRUNC)


def _kept(mounted: Mounted) -> bytes:
    return stored(mounted.store, mounted.scope).facts[b"file"].content


def test_a_crash_before_the_first_write_leaves_the_old_file(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url)
    file, fd = _truncated(mounted)
    assert file.stat().st_size == 0  # readers on the mount see POSIX
    assert file.read_bytes() == b""
    mounted.kill()
    os.close(fd)
    mounted.start()
    assert file.read_bytes() == OLD
    assert_agreement(mounted)


def test_a_crash_after_the_first_write_leaves_the_new_file(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url)
    file, fd = _truncated(mounted)
    count = commits(server, mounted.scope)
    os.write(fd, NEW)
    assert commits(server, mounted.scope) == count + 1
    mounted.kill()
    os.close(fd)
    mounted.start()
    assert file.read_bytes() == NEW
    assert_agreement(mounted)


def test_a_truncation_that_nothing_follows_is_stored_after_the_close(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url)
    file, fd = _truncated(mounted)
    assert _kept(mounted) == OLD
    os.close(fd)
    wait_until(lambda: _kept(mounted) == b"", "the truncation to be stored")
    assert_agreement(mounted)
    mounted.kill()
    mounted.start()
    assert file.read_bytes() == b""


def test_fsync_and_a_clean_end_store_it_too(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url)
    _, fd = _truncated(mounted)
    os.fsync(fd)
    assert _kept(mounted) == b""
    os.close(fd)
    file, fd = _truncated(mounted)
    assert _kept(mounted) == OLD
    assert mounted.stop() == 0
    os.close(fd)
    assert _kept(mounted) == b""
    mounted.start()
    assert file.read_bytes() == b""


def test_other_changes_of_the_file_take_it_along(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url)
    for change in (lambda file: file.chmod(0o600), lambda file: os.utime(file, (1, 2))):
        file, fd = _truncated(mounted)
        change(file)
        assert _kept(mounted) == b""
        os.close(fd)
    file, fd = _truncated(mounted)
    file.rename(mounted.path / "moved")
    assert stored(mounted.store, mounted.scope).facts[b"moved"].content == b""
    os.close(fd)
    assert_agreement(mounted)


def test_a_truncation_waits_for_a_store_that_is_away(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url, "--store-timeout", "1")
    mounted.expected += OUTAGE
    file, fd = _truncated(mounted)
    server.freeze()
    assert outcome(lambda: os.write(fd, NEW)) == "EIO"
    os.close(fd)
    assert file.read_bytes() == b""
    server.thaw()
    wait_until_writable(mounted.path)
    wait_until(lambda: _kept(mounted) in {b"", NEW}, "the truncation to be stored")
    wait_until(lambda: file.read_bytes() == _kept(mounted), "memory and store to agree")
    assert_agreement(mounted)
