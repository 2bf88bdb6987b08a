"""A rewrite with open(O_TRUNC), write and close is one commit. A crash in between leaves the old content."""

import os
from pathlib import Path

from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.outcomes import OUTAGE, outcome, wait_until_writable
from tests.support.servers import RedisServer
from tests.support.store_comparison import assert_store_matches, commit_count, stored_tree

OLD, NEW = b"old content" * 5000, b"new content"


def _open_truncating(mounted: Mounted) -> tuple[Path, int]:
    """Return a file that was opened with O_TRUNC just now, and its file descriptor."""
    file = mounted.path / "file"
    file.write_bytes(OLD)
    return file, os.open(file, os.O_WRONLY | os.O_TRUNC)


def _stored_content(mounted: Mounted) -> bytes:
    return stored_tree(mounted.store, mounted.scope).facts[b"file"].content


def test_a_crash_before_the_first_write_leaves_the_old_file(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url)
    file, fd = _open_truncating(mounted)
    assert file.stat().st_size == 0  # readers on the mount see the truncation at once, as in POSIX
    assert file.read_bytes() == b""
    mounted.kill()
    os.close(fd)
    mounted.start()
    assert file.read_bytes() == OLD
    assert_store_matches(mounted)


def test_a_crash_after_the_first_write_leaves_the_new_file(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url)
    file, fd = _open_truncating(mounted)
    count = commit_count(server, mounted.scope)
    os.write(fd, NEW)
    assert commit_count(server, mounted.scope) == count + 1
    mounted.kill()
    os.close(fd)
    mounted.start()
    assert file.read_bytes() == NEW
    assert_store_matches(mounted)


def test_a_truncation_without_a_write_is_stored_after_the_close(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url)
    file, fd = _open_truncating(mounted)
    assert _stored_content(mounted) == OLD
    os.close(fd)
    wait_until(lambda: _stored_content(mounted) == b"", "the truncation to be stored")
    assert_store_matches(mounted)
    mounted.kill()
    mounted.start()
    assert file.read_bytes() == b""


def test_fsync_and_a_clean_end_store_a_truncation(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url)
    _, fd = _open_truncating(mounted)
    os.fsync(fd)
    assert _stored_content(mounted) == b""
    os.close(fd)
    file, fd = _open_truncating(mounted)
    assert _stored_content(mounted) == OLD
    assert mounted.stop() == 0
    os.close(fd)
    assert _stored_content(mounted) == b""
    mounted.start()
    assert file.read_bytes() == b""


def test_other_changes_of_the_file_store_a_truncation(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url)
    for change in (lambda file: file.chmod(0o600), lambda file: os.utime(file, (1, 2))):
        file, fd = _open_truncating(mounted)
        change(file)
        assert _stored_content(mounted) == b""
        os.close(fd)
    file, fd = _open_truncating(mounted)
    file.rename(mounted.path / "moved")
    assert stored_tree(mounted.store, mounted.scope).facts[b"moved"].content == b""
    os.close(fd)
    assert_store_matches(mounted)


def test_a_truncation_waits_until_the_store_is_available(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url, "--store-timeout", "1")
    mounted.expected += OUTAGE
    file, fd = _open_truncating(mounted)
    server.freeze()
    assert outcome(lambda: os.write(fd, NEW)) == "EIO"
    os.close(fd)
    assert file.read_bytes() == b""
    server.thaw()
    wait_until_writable(mounted.path)
    wait_until(lambda: _stored_content(mounted) in {b"", NEW}, "the truncation to be stored")
    wait_until(lambda: file.read_bytes() == _stored_content(mounted), "memory and store to agree")
    assert_store_matches(mounted)
