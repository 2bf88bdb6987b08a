"""The lifecycle of a scope as clients see it: crash and remount, flush, destroy, read-only mounts."""

import errno
import json
import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from tests.control.conftest import Connect
from tests.support.cli import statuses
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.servers import RedisServer
from tests.support.store_comparison import assert_store_matches
from tests.support.syscalls import closing_fd
from vfsd import Vfs

CONTENT = os.urandom(100_000)


def test_acknowledged_changes_and_their_times_survive_a_crash(mounted: Mounted, vfs: Vfs) -> None:
    vfs.write_file("a/b/file", b"old", parents=True)
    replaced = vfs.write_file("a/b/file", CONTENT)
    appended = vfs.append_file("log", b"line\n")
    vfs.copy_file("a/b/file", "copy")
    vfs.move_file("copy", "moved")
    vfs.mkdir("empty")
    vfs.write_file("gone", b"")
    vfs.delete_file("gone")
    before = assert_store_matches(mounted)
    mounted.kill()
    mounted.start()
    assert assert_store_matches(mounted) == before
    assert vfs.read_file("a/b/file") == CONTENT
    assert (mounted.path / "a/b/file").stat().st_mtime_ns == replaced.mtime_ns == vfs.stat("a/b/file").mtime_ns
    assert vfs.stat("log").mtime_ns == appended.mtime_ns
    assert vfs.list_all_paths() == ["a/b/file", "log", "moved"]


def test_a_flush_stores_a_deferred_truncation(mounted: Mounted, vfs: Vfs) -> None:
    (mounted.path / "file").write_bytes(CONTENT)
    with closing_fd(os.open(mounted.path / "file", os.O_WRONLY | os.O_TRUNC)):
        assert vfs.read_file("file") == b""
        vfs.flush()
        mounted.kill()
    mounted.start()
    assert (mounted.path / "file").read_bytes() == b""


def test_info(mounted: Mounted, vfs: Vfs) -> None:
    vfs.write_file("file", b"12345")
    info = vfs.info()
    assert (info["scope"], info["mountpoint"]) == (mounted.scope, os.fspath(mounted.path))
    assert (info["files"], info["bytes"], info["pending"], info["read_only"]) == (1, 5, 0, False)
    assert info["store"].startswith("unix://")
    assert info["last_error"] is None
    (entry,) = statuses(mounted, mounted.path)
    assert {**entry, **info} == entry


def _scopes(mounted: Mounted) -> list[str]:
    return [entry["scope"] for entry in json.loads(mounted.vfsd("scopes", "--json").stdout)]


@pytest.mark.parametrize("kind", ["redis", "sqlite"])
def test_destroy(mount: MountFactory, redis_server: RedisServer, connected: Connect, tmp_path: Path, kind: str) -> None:
    mounted = mount(redis_server.url if kind == "redis" else f"sqlite:{tmp_path}/store.db")
    vfs = connected(mounted)
    vfs.write_file("a/file", CONTENT, parents=True)
    fd = os.open(mounted.path / "a/file", os.O_WRONLY | os.O_TRUNC)  # its deferred truncation is never stored
    vfs.destroy()
    assert mounted.scope not in _scopes(mounted)
    assert mounted.wait() == 0
    wait_until(lambda: not mounted.is_mounted(), "the mount to go")
    with pytest.raises(OSError, match="not connected"):
        os.fstat(fd)
    with suppress(
        OSError
    ):  # whether close reports the end is the kernel's choice: it may have given up on FLUSH before
        os.close(fd)
    with pytest.raises(ConnectionRefusedError, match="no daemon of this user serves it"):
        vfs.info()
    mounted.start()
    assert os.listdir(mounted.path) == []


def test_a_scope_of_another_owner_is_not_destroyed(
    mount: MountFactory, redis_server: RedisServer, connected: Connect
) -> None:
    first = mount(redis_server.url)
    first.expected.append(r"claimed by .*; this mount stays readable")
    vfs = connected(first)
    vfs.write_file("file", CONTENT)
    second = mount(redis_server.url, "--take-over", scope=first.scope)
    with pytest.raises(OSError, match="claimed by") as caught:
        vfs.destroy()
    assert caught.value.errno == errno.EROFS
    assert second.is_mounted()
    assert (second.path / "file").read_bytes() == CONTENT == (first.path / "file").read_bytes()
    (second.path / "new").touch()
    assert_store_matches(second)


def test_a_read_only_mount_refuses_every_change(
    mount: MountFactory, redis_server: RedisServer, connected: Connect
) -> None:
    writing = mount(redis_server.url)
    (writing.path / "file").write_bytes(CONTENT)
    (writing.path / "directory").mkdir()
    vfs = connected(mount(redis_server.url, "--read-only", scope=writing.scope))
    assert vfs.read_file("file") == CONTENT
    assert vfs.readdir() == ["directory", "file"]
    assert vfs.info()["read_only"] is True
    vfs.flush()
    for change in (
        lambda: vfs.write_file("file", b""),
        lambda: vfs.write_file("new", b""),
        lambda: vfs.append_file("file", b"x"),
        lambda: vfs.copy_file("file", "new"),
        lambda: vfs.move_file("file", "new"),
        lambda: vfs.delete_file("file"),
        lambda: vfs.mkdir("new"),
        lambda: vfs.rmdir("directory"),
        lambda: vfs.rmdir("directory", recursive=True),
        vfs.destroy,
    ):
        with pytest.raises(OSError, match="Read-only file system") as caught:
            change()
        assert caught.value.errno == errno.EROFS
    assert sorted(os.listdir(writing.path)) == ["directory", "file"]


def test_the_owner_option_is_visible_to_clients(
    mount: MountFactory, redis_server: RedisServer, connected: Connect
) -> None:
    mounted = mount(redis_server.url, "--owner", "1001:1002")
    vfs = connected(mounted)
    vfs.write_file("file", b"", mode=0o600)
    in_mount, by_client = (mounted.path / "file").stat(), vfs.stat("file")
    assert (
        (by_client.uid, by_client.gid, by_client.mode)
        == (in_mount.st_uid, in_mount.st_gid, in_mount.st_mode)
        == (1001, 1002, stat.S_IFREG | 0o600)
    )
