"""A Redis that answers but refuses writes (a replica, or one that cannot save): the caller gets an error at once."""

from tests.faults.conftest import ProxyFactory, ServerFactory
from tests.support.mounted import MountFactory, wait_until
from tests.support.outcomes import DONE, outcome, wait_until_writable, write
from tests.support.servers import RedisServer, ServerOptions
from tests.support.store_comparison import assert_store_matches

OLD, NEW = b"old content", b"new content"
REFUSED = r"refuses: READONLY .*trying again"


def test_a_replica_is_erofs_at_once_until_it_is_master_again(server: RedisServer, mount: MountFactory) -> None:
    mounted = mount(server.url, "--store-timeout", "600")  # longer than the test would wait: errors must come at once
    mounted.expected += [REFUSED, "answers again"]
    file = mounted.path / "file"
    file.write_bytes(OLD)
    with server.client() as client:
        client.replicaof("127.0.0.1", "1")
        assert outcome(lambda: write(file, NEW)) == "EROFS"
        assert outcome((mounted.path / "directory").mkdir) == "EROFS"
        assert outcome(file.unlink) == "EROFS"
        assert file.read_bytes() == OLD
        assert_store_matches(mounted)
        client.replicaof("NO", "ONE")
    wait_until_writable(mounted.path)
    write(file, NEW)
    assert_store_matches(mounted)


def test_after_a_demotion_the_mount_moves_to_the_new_master_without_an_error(
    make_server: ServerFactory, mount: MountFactory, make_proxy: ProxyFactory
) -> None:
    """The address now leads to another server. The change that reached the old master is stored on the new one."""
    options = ServerOptions(tcp=True, arguments=("--repl-diskless-sync-delay", "0"))
    old, new = make_server(options), make_server(options)
    proxy = make_proxy(old)
    mounted = mount(proxy.url, "--store-timeout", "60")
    mounted.expected += [REFUSED, "answers again"]
    file = mounted.path / "file"
    file.write_bytes(OLD)
    with old.client() as client, new.client() as promoted:
        promoted.replicaof("127.0.0.1", str(old.port))
        wait_until(lambda: promoted.info("replication").get("master_link_status") == "up", "the replica to follow")
        assert client.execute_command("WAIT", 1, 60_000) == 1
        promoted.replicaof("NO", "ONE")
        client.replicaof("127.0.0.1", str(new.port))
    proxy.server = new.socket
    assert outcome(lambda: write(file, NEW)) == DONE
    assert_store_matches(mounted)


def test_a_server_that_cannot_save_is_eio_at_once_until_it_can(make_server: ServerFactory, mount: MountFactory) -> None:
    """MISCONF: a snapshot failed, so Redis refuses writes until a snapshot succeeds."""
    server = make_server(ServerOptions(arguments=("--save", "3600 1000000")))
    mounted = mount(server.url, "--store-timeout", "600")
    file = mounted.path / "file"
    file.write_bytes(OLD)
    obstacle = server.directory / "dump.rdb"
    obstacle.mkdir()
    _snapshot(server, "err")
    assert outcome(lambda: write(file, NEW)) == "EIO"
    assert outcome((mounted.path / "directory").mkdir) == "EIO"
    assert file.read_bytes() == OLD
    assert "MISCONF" in mounted.vfsd("status", "--json").stdout
    obstacle.rmdir()
    _snapshot(server, "ok")
    write(file, NEW)
    assert_store_matches(mounted)


def _snapshot(server: RedisServer, status: str) -> None:
    with server.client() as client:
        client.bgsave()
        wait_until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == status, f"a snapshot: {status}")
