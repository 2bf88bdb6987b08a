"""Redis servers: every way to connect, servers that are refused, and that no password is ever shown."""

import os
import re
from pathlib import Path

import pytest
import redis

from tests.support.cli import detached, failure, statuses, success
from tests.support.mounted import MountFactory, run_vfsd
from tests.support.servers import RedisServer, ServerOptions, redis_program
from vfsd.store.url import hidden

PASSWORD = "pass/word@: %"


def _mount_and_remount(mount: MountFactory, url: str, *options: str) -> str:
    """Mount from *url*, write, remount, and assert that the content is there. Return the log of the daemon."""
    mounted = mount(url, *options)
    (mounted.path / "file").write_bytes(b"content" * 10_000)
    mounted.remount()
    assert (mounted.path / "file").read_bytes() == b"content" * 10_000
    assert re.search(rf"^{mounted.scope} +1 ", success(mounted.vfsd("scopes")), re.MULTILINE)
    assert mounted.stop() == 0
    return mounted.log.read_text()


def test_unix_socket_tcp_and_tls_with_a_password(mount: MountFactory) -> None:
    with RedisServer(redis_program(), ServerOptions(tcp=True, tls=True, password=PASSWORD)) as server:
        for url in (server.url, server.tcp_url, server.tls_url):
            log = _mount_and_remount(mount, url)
            assert "pass" not in log.replace("***", "")
            with server.client() as client:
                client.flushall()


def test_a_user_and_a_database(mount: MountFactory) -> None:
    with RedisServer(redis_program(), ServerOptions(tcp=True)) as server:
        with server.client() as client:
            client.acl_setuser("agent", enabled=True, passwords=["+secret"], keys=["vfsd:*"], commands=["+@all"])
        url = f"redis://agent:secret@127.0.0.1:{server.port}/5"
        assert "secret" not in _mount_and_remount(mount, url)
        with redis.Redis(port=server.port, db=5) as client:
            assert client.exists("vfsd:scopes")


def test_a_tls_server_that_cannot_be_verified_is_refused(tmp_path: Path) -> None:
    with RedisServer(redis_program(), ServerOptions(tls=True)) as server:
        url = server.tls_url.partition("?")[0]
        line = failure(run_vfsd("scopes", "--store", url, env=dict(os.environ)), 3)
        assert line.startswith(f"cannot reach the store {url}: ")
        assert "certificate" in line.lower()


def test_a_wrong_password_is_refused_and_no_password_is_shown(mount: MountFactory) -> None:
    with RedisServer(redis_program(), ServerOptions(tcp=True, password="right")) as server:
        url = f"redis://:wrong-secret@127.0.0.1:{server.port}/0"
        shown = f"redis://:***@127.0.0.1:{server.port}/0"
        mounted = mount(url, start=False)
        mounted.path.mkdir()
        mounted.expected.append("refuses the credentials")
        with detached(mounted) as daemon:
            line = failure(daemon.mount(), 4)
        assert line.startswith(f"the store {shown} refuses the credentials: ")
        assert line.endswith("check user and password")
        anonymous = failure(mounted.vfsd("scopes", "--store", f"redis://127.0.0.1:{server.port}/0"), 4)
        assert "refuses the credentials" in anonymous
        assert "secret" not in line + mounted.log.read_text()


@pytest.mark.parametrize(
    "url",
    [
        "redis://u:SEC/RET@127.0.0.1:1/0",
        "redis://u:SEC?RET@127.0.0.1:1/0",
        "redis://u:SEC#RET@127.0.0.1:1/0",
        "redis://SEC/RET:x@127.0.0.1:1/0",
        "redis://u:SEC@RET@127.0.0.1:1/0",
        "redis://u:SEC://RET@127.0.0.1:1/0",
        "redis://[SEC:RET@127.0.0.1:1/0",
        "redis://u:SECRET@127.0.0.1:port/0",
        "redis://u:SEC\u2100RET@127.0.0.1:1/0",
        "redis://127.0.0.1:1/0?password=SEC&RET",
        "redis://127.0.0.1:1/0?password=SEC@RET",
        "redis+sentinel://u:SEC/RET@127.0.0.1:1/service",
        "rediss://u:SEC/RET@127.0.0.1:1/0",
        "nonsense://u:SEC/RET@127.0.0.1",
        "u:SEC/RET@127.0.0.1",
    ],
)
def test_a_password_is_hidden_even_in_an_invalid_url(tmp_path: Path, url: str) -> None:
    environment = {**os.environ, "VFSD_RUNTIME_DIR": str(tmp_path / "run")}
    arguments = ["mount", str(tmp_path / "mnt"), "--scope=run", "--log-file", str(tmp_path / "log")]
    result = run_vfsd(*arguments, "--store", url, env=environment)
    assert result.returncode in {2, 3}, result.stderr
    assert "***" in result.stderr
    assert not re.search("SEC|RET", result.stderr), result.stderr
    assert not (tmp_path / "log").exists() or not re.search("SEC|RET", (tmp_path / "log").read_text())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://user:secret@host:1/0", "redis://user:***@host:1/0"),
        ("redis://:secret@host", "redis://:***@host"),
        ("redis://secret@host", "redis://***@host"),
        ("redis://host/0?sentinel_password=secret&db=1", "redis://host/0?sentinel_password=***&db=1"),
        ("unix:///tmp/a@b.sock?db=1", "unix:///tmp/a@b.sock?db=1"),
        ("sqlite:/tmp/a:b@c?d", "sqlite:/tmp/a:b@c?d"),
        ("redis://host:1/0", "redis://host:1/0"),
    ],
)
def test_only_secrets_are_hidden(url: str, shown: str) -> None:
    assert hidden(url) == shown


def test_the_password_of_a_mount_is_never_shown(mount: MountFactory) -> None:
    with RedisServer(redis_program(), ServerOptions(password="secret")) as server:
        mounted = mount(server.url, "--debug", start=False)
        with detached(mounted) as daemon:
            result = daemon.mount()
            success(result)
            (entry,) = statuses(mounted, mounted.path)
            table = success(mounted.vfsd("status"))
            again = mounted.vfsd("mount", str(mounted.path), "--scope", mounted.scope)
            elsewhere = mounted.vfsd("mount", f"{mounted.path}-2", "--scope", mounted.scope, "--foreground")
            assert elsewhere.returncode == 7
            scopes = success(mounted.vfsd("scopes"))
            registered = "".join(path.read_text() for path in (mounted.path.parent / "run").glob("*.json"))
            mounts = Path("/proc/self/mountinfo").read_text()
            success(mounted.vfsd("umount", str(mounted.path)))
        assert entry["store"] == server.url.replace("secret", "***")
        for text in (result.stdout, result.stderr, table, again.stdout, elsewhere.stderr, scopes, registered, mounts):
            assert "secret" not in text
        assert "secret" not in mounted.log.read_text()


def test_a_server_that_evicts_is_refused_without_allow_eviction(mount: MountFactory) -> None:
    with RedisServer(redis_program(), ServerOptions(arguments=("--maxmemory-policy", "allkeys-lru"))) as server:
        mounted = mount(server.url, start=False)
        mounted.path.mkdir()
        mounted.expected.append("maxmemory-policy allkeys-lru")
        refusal = f"the store {server.url} has maxmemory-policy allkeys-lru: it may drop files when memory is short"
        with detached(mounted) as daemon:
            line = failure(daemon.mount(), 4)
            assert line == f"{refusal}; set it to noeviction, or mount with --allow-eviction"
            accepted = daemon.mount("--allow-eviction")
            success(accepted)
            assert f"vfsd: {refusal}\n" in accepted.stderr
            success(mounted.vfsd("umount", str(mounted.path)))


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        (ServerOptions(), "does not persist (no append-only file, no snapshots): its crash loses everything"),
        (ServerOptions(arguments=("--save", "60 1")), "keeps snapshots only: its crash loses what came after"),
        (ServerOptions(appendonly=True), None),
    ],
    ids=["nothing", "snapshots", "append-only file"],
)
def test_a_warning_tells_if_redis_does_not_persist(
    mount: MountFactory, options: ServerOptions, warning: str | None
) -> None:
    with RedisServer(redis_program(), options) as server:
        mounted = mount(server.url, start=False)
        mounted.path.mkdir()
        with detached(mounted) as daemon:
            result = daemon.mount()
            success(result)
            warnings = [line for line in result.stderr.splitlines() if "created" not in line]
            assert len(warnings) == (0 if warning is None else 1)
            assert all(f"the store {server.url} {warning}" in line for line in warnings)
            success(mounted.vfsd("umount", str(mounted.path)))


@pytest.mark.parametrize("forbidden", [["-config"], ["-config", "-info"]], ids=["CONFIG", "CONFIG and INFO"])
def test_a_user_without_administration_commands_can_mount(mount: MountFactory, forbidden: list[str]) -> None:
    with RedisServer(redis_program(), ServerOptions(tcp=True)) as server:
        with server.client() as client:
            commands = ["+@all", *forbidden]
            client.acl_setuser("agent", enabled=True, passwords=["+secret"], keys=["vfsd:*"], commands=commands)
        mounted = mount(f"redis://agent:secret@127.0.0.1:{server.port}/0", start=False)
        mounted.expected.append(r"does not tell|does not let itself be examined")
        mounted.start()
        (mounted.path / "file").write_bytes(b"content")
        assert os.statvfs(mounted.path).f_bavail > 0
        mounted.remount()
        assert (mounted.path / "file").read_bytes() == b"content"
        assert mounted.stop() == 0
        assert re.search(r"WARNING .* (does not tell|does not let itself be examined)", mounted.log.read_text())


def test_a_replica_is_refused(mount: MountFactory) -> None:
    with RedisServer(redis_program(), ServerOptions(tcp=True)) as master:
        replica_of = ServerOptions(arguments=("--replicaof", f"127.0.0.1 {master.port}"))
        with RedisServer(redis_program(), replica_of) as replica:
            mounted = mount(replica.url, start=False)
            mounted.path.mkdir()
            mounted.expected.append("is a replica")
            with detached(mounted) as daemon:
                line = failure(daemon.mount(), 4)
            assert line == f"the store {replica.url} is a replica of 127.0.0.1: name the master"


def test_a_user_without_write_permission_is_refused(mount: MountFactory) -> None:
    with RedisServer(redis_program(), ServerOptions(tcp=True)) as server:
        with server.client() as client:
            commands = ["+@read", "+@connection", "+info"]
            client.acl_setuser("guest", enabled=True, passwords=["+secret"], keys=["vfsd:*"], commands=commands)
        mounted = mount(f"redis://guest:secret@127.0.0.1:{server.port}/0", start=False)
        mounted.path.mkdir()
        mounted.expected += ["does not tell", "has no permissions"]
        with detached(mounted) as daemon:
            result = daemon.mount()
        assert result.returncode == 4
        assert "secret" not in result.stderr
