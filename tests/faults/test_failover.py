"""A server that restarts without commits that it had acknowledged, and a master that is replaced by its replica."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from tests.support.mounted import MountFactory, wait_until
from tests.support.servers import RedisServer, ServerOptions, redis_program

CONNECTION_LOST = (r"lost the store .* during a commit", r"cannot reach the store .*trying again", r"answers again")
STORED_AGAIN = r"had lost \d+ acknowledged commits: stored again"


def test_commits_that_the_server_lost_in_a_crash_are_stored_again(mount: MountFactory) -> None:
    with RedisServer(redis_program(), ServerOptions(arguments=("--save", "3600 1000000"))) as server:
        mounted = mount(server.url)
        mounted.expected += [*CONNECTION_LOST, STORED_AGAIN]
        (mounted.path / "before").write_text("in the snapshot")
        with server.client() as client:
            client.save()
        (mounted.path / "directory").mkdir()
        for number in range(50):
            (mounted.path / "directory" / f"{number}").write_text(f"after the snapshot {number}")
        (mounted.path / "before").unlink()
        server.kill()
        server.start()
        (mounted.path / "later").write_text("after the restart")
        listing = sorted(os.listdir(mounted.path / "directory"))
        mounted.remount()
        assert sorted(os.listdir(mounted.path)) == ["directory", "later"]
        assert sorted(os.listdir(mounted.path / "directory")) == listing
        assert (mounted.path / "directory" / "49").read_text() == "after the snapshot 49"
        assert "stored again" in mounted.log.read_text()


def test_a_server_that_lost_more_than_the_daemon_keeps_makes_the_mount_read_only(mount: MountFactory) -> None:
    with RedisServer(redis_program(), ServerOptions(arguments=("--save", "3600 1000000"))) as server:
        mounted = mount(server.url)
        mounted.expected += [*CONNECTION_LOST, r"acknowledged commits of scope .*, more than are remembered here"]
        with server.client() as client:
            client.save()
        content = os.urandom(1 << 20)
        (mounted.path / "large").write_bytes(content * 40)
        server.kill()
        server.start()
        wait_until(lambda: not _can_write(mounted.path / "refused"), "the mount to refuse changes")
        assert (mounted.path / "large").read_bytes() == content * 40


def _can_write(path: Path) -> bool:
    try:
        path.write_text("x")
    except OSError:
        return False
    return True


@contextmanager
def _sentinel(directory: Path, master: RedisServer) -> Iterator[RedisServer]:
    """Run a single Sentinel with short timeouts that watches *master* under the name "vfsd"."""
    configuration = directory / "sentinel.conf"
    configuration.write_text(
        f"sentinel monitor vfsd 127.0.0.1 {master.port} 1\n"
        "sentinel down-after-milliseconds vfsd 300\n"
        "sentinel failover-timeout vfsd 3000\n"
    )
    options = ServerOptions(tcp=True, arguments=("--sentinel",), configuration=configuration)
    with RedisServer(redis_program(), options) as sentinel:
        yield sentinel


def _knows_master(sentinel: RedisServer, master: RedisServer) -> bool:
    """Whether *sentinel* knows *master* and is connected to it. Before that it may call it down, and name none."""
    with redis.Redis(port=sentinel.port) as client:
        state = client.sentinel_master("vfsd")
    return bool(state["port"] == master.port and state["flags"] == "master")


def test_a_mount_follows_its_sentinel_to_the_new_master(mount: MountFactory, tmp_path: Path) -> None:
    no_delay = ("--repl-diskless-sync-delay", "0")
    with RedisServer(redis_program(), ServerOptions(tcp=True, arguments=no_delay)) as master:
        following = ServerOptions(tcp=True, arguments=("--replicaof", f"127.0.0.1 {master.port}"))
        with RedisServer(redis_program(), following) as replica, _sentinel(tmp_path, master) as sentinel:
            with replica.client() as client:
                wait_until(lambda: client.info("replication")["master_link_status"] == "up", "the replica to follow")
            with redis.Redis(port=sentinel.port) as client:
                wait_until(lambda: client.execute_command("SENTINEL", "REPLICAS", "vfsd"), "the Sentinel to see it")
            mounted = mount(f"redis+sentinel://127.0.0.1:{sentinel.port}/vfsd", "--store-timeout", "30")
            mounted.expected += [*CONNECTION_LOST, STORED_AGAIN, r"is a replica", r"refuses: READONLY"]
            (mounted.path / "before").write_text("on the old master")
            with master.client() as client:
                client.set("after the scope", "")
                assert client.wait(1, 60_000) == 1, "replication is not part of a commit: the replica may lag"
            master.kill()
            (mounted.path / "after").write_text("on the new one")
            wait_until(lambda: _knows_master(sentinel, replica), "the Sentinel to be sure of the new master")
            mounted.remount()
            assert (mounted.path / "before").read_text() == "on the old master"
            assert (mounted.path / "after").read_text() == "on the new one"


def test_a_wrong_sentinel_url_is_a_usage_error(mount: MountFactory) -> None:
    mounted = mount("memory:", start=False)
    done = mounted.vfsd("mount", os.fspath(mounted.path), "--scope", "x", "--store", "redis+sentinel://localhost:1/")
    assert done.returncode == 2
    assert "redis+sentinel://HOST:PORT[,HOST:PORT]/SERVICE" in done.stderr
