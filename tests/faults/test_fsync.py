"""``--fsync wait:N`` and ``waitaof``: fsync(2) waits for replicas, or for the server's disk. Otherwise it is EIO."""

import os
import signal
from pathlib import Path

from tests.faults.conftest import ProxyFactory, ServerFactory
from tests.support.mounted import MountFactory, wait_until
from tests.support.outcomes import DONE, OUTAGE, outcome, write
from tests.support.servers import RedisServer, ServerOptions
from tests.support.store_comparison import assert_store_matches

FAST_REPLICATION = ServerOptions(tcp=True, arguments=("--repl-diskless-sync-delay", "0"))


def _fsync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _follow(replica: RedisServer, master: RedisServer) -> None:
    with replica.client() as client:
        client.replicaof("127.0.0.1", str(master.port))
        wait_until(lambda: client.info("replication").get("master_link_status") == "up", "the replica to follow")


def test_fsync_waits_for_replicas_and_its_content_survives_a_failover(
    make_server: ServerFactory, mount: MountFactory, make_proxy: ProxyFactory
) -> None:
    master, replica = make_server(FAST_REPLICATION), make_server(FAST_REPLICATION)
    proxy = make_proxy(master)
    mounted = mount(proxy.url, "--fsync", "wait:1", "--store-timeout", "2")
    mounted.expected += OUTAGE
    file = mounted.path / "file"
    file.write_bytes(b"content")
    assert outcome(lambda: _fsync(file)) == "EIO"  # there is no replica yet
    assert file.read_bytes() == b"content"
    _follow(replica, master)
    assert outcome(lambda: _fsync(file)) == DONE
    assert outcome(lambda: _fsync(mounted.path)) == DONE
    os.kill(replica.pid, signal.SIGSTOP)
    assert outcome(lambda: write(file, b"written ")) == DONE
    assert outcome(lambda: _fsync(file)) == "EIO"
    os.kill(replica.pid, signal.SIGCONT)
    wait_until(lambda: outcome(lambda: _fsync(file)) == DONE, "the replica to confirm")
    proxy.server = replica.socket
    master.kill()
    with replica.client() as client:
        client.replicaof("NO", "ONE")
    wait_until(lambda: outcome((mounted.path / "directory").mkdir) == DONE, "the mount to follow")
    found = assert_store_matches(mounted)
    assert found.facts[b"file"].content == b"written "


def test_fsync_waits_for_the_disk_of_the_server(make_valkey: ServerFactory, mount: MountFactory) -> None:
    """After fsync the content survives ``kill -9`` of a server that writes to its disk once per second only."""
    server = make_valkey(ServerOptions(appendonly=True, arguments=("--appendfsync", "everysec")))
    mounted = mount(server.url, "--fsync", "waitaof", "--store-timeout", "5")
    file = mounted.path / "file"
    file.write_bytes(b"content")
    assert outcome(lambda: _fsync(file)) == DONE
    with server.client() as client:
        client.config_set("appendonly", "no")
        assert outcome(lambda: write(file, b"changed")) == DONE
        assert outcome(lambda: _fsync(file)) == "EIO"
        client.config_set("appendonly", "yes")
    wait_until(lambda: outcome(lambda: _fsync(file)) == DONE, "the server to write it to its disk")
    mounted.kill()
    server.kill()
    server.start()
    mounted.start()
    assert file.read_bytes() == b"changed"


def test_a_server_that_cannot_confirm_is_refused(
    make_valkey: ServerFactory, make_server: ServerFactory, mount: MountFactory
) -> None:
    cases = [(make_valkey(ServerOptions()), "set appendonly yes")]
    distributed = make_server(ServerOptions(appendonly=True))
    if not _knows_waitaof(distributed):  # Debian 12 has Redis 7.0, Debian 13 has Redis 8
        cases.append((distributed, "needs Redis 7.2 or Valkey"))
    for server, why in cases:
        other = mount(server.url, start=False)
        done = other.vfsd("mount", os.fspath(other.path), "--scope", other.scope, "--fsync", "waitaof")
        assert done.returncode == 4
        assert why in done.stderr


def _knows_waitaof(server: RedisServer) -> bool:
    with server.client() as client:
        return b"waitaof" in client.command_list()
