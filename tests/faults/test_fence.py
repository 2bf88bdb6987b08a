"""The fence also works during another fault: a full server, or a user without the necessary permissions."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer, redis_program

STORE_LOST = (r"has been claimed by", r"lost the store", r"the epoch of scope", r"trying again", r"answers again")


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer(redis_program()) as running:
        yield running


def _write_error(path: Path) -> int:
    with pytest.raises(OSError) as refusal:  # noqa: PT011 (the caller compares the errno)
        path.write_text("STOLEN")
    assert refusal.value.errno is not None
    return refusal.value.errno


def _take_over(mount: MountFactory, server: RedisServer) -> tuple[Mounted, Mounted]:
    old = mount(server.url)
    old.expected += STORE_LOST
    (old.path / "file").write_text("one")
    new = mount(server.url, "--take-over", scope=old.scope)
    return old, new


def test_a_fenced_owner_stays_fenced_after_a_write_to_a_full_server(mount: MountFactory, server: RedisServer) -> None:
    old, new = _take_over(mount, server)
    with server.client() as client:
        client.config_set("maxmemory", 1)
        _write_error(old.path / "other")
        client.config_set("maxmemory", 0)
    assert _write_error(old.path / "file") == errno.EROFS
    assert (new.path / "file").read_text() == "one"
    assert os.listdir(new.path) == ["file"]


def test_a_fenced_owner_stays_fenced_after_a_delete_on_a_full_server(mount: MountFactory, server: RedisServer) -> None:
    old, new = _take_over(mount, server)
    with server.client() as client:
        client.config_set("maxmemory", 1)
        with pytest.raises(OSError, match="Read-only file system"):
            (old.path / "file").unlink()
        client.config_set("maxmemory", 0)
    assert _write_error(old.path / "file") == errno.EROFS
    assert (new.path / "file").read_text() == "one"


@pytest.mark.parametrize("missing", ["watch", "multi"])
def test_a_user_without_the_commands_of_the_fence_cannot_mount(
    mount: MountFactory, server: RedisServer, missing: str
) -> None:
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", missing, "on", ">secret", "~*", "+@all", f"-{missing}")
    mounted = mount(server.url.replace("unix://", f"unix://{missing}:secret@"), start=False)
    done = mounted.vfsd("mount", os.fspath(mounted.path), "--scope", mounted.scope, "--store", mounted.store)
    assert done.returncode == 4
    assert "NOPERM" in done.stderr
    assert "secret" not in done.stderr


def test_concurrent_writers_do_not_exceed_a_limit(mount: MountFactory, server: RedisServer) -> None:
    mounted = mount(server.url, "--max-bytes", "2M")
    server.freeze()
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            try:
                (mounted.path / f"{number}").write_bytes(b"x" * (1 << 20))
            except OSError:
                os._exit(1)
            os._exit(0)
        children.append(child)
    server.thaw()
    failed = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert failed.count(1) >= 2
    assert sum(path.stat().st_size for path in mounted.path.iterdir()) <= 2 << 20
