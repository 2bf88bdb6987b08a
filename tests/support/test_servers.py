"""The private servers of the tests work as documented."""

import subprocess
import sys
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.support.servers import RedisServer, ServerOptions, redis_program, valkey_program


@pytest.mark.parametrize("program", [redis_program(), valkey_program()], ids=["redis", "valkey"])
def test_a_server_starts_answers_and_leaves_nothing(program: Path) -> None:
    with RedisServer(program) as server:
        process = Path(f"/proc/{server.pid}")
        with server.client() as client, redis.Redis.from_url(server.url) as other:
            client.set("key", b"value")
            assert other.get("key") == b"value"
    assert not process.exists()
    assert not server.directory.exists()


def test_a_server_listens_on_tcp_and_tls_and_requires_its_password() -> None:
    options = ServerOptions(tcp=True, tls=True, password="pass/word@: %", maxmemory=20 << 20)
    with RedisServer(redis_program(), options) as server:
        for url in (server.url, server.tcp_url, server.tls_url):
            with redis.Redis.from_url(url) as client:
                assert client.config_get("maxmemory") == {"maxmemory": str(20 << 20)}
        retry = Retry(NoBackoff(), 0)
        with redis.Redis(port=server.port, retry=retry) as unauthenticated, pytest.raises(redis.AuthenticationError):
            unauthenticated.ping()


def test_a_server_with_an_append_only_file_keeps_its_data_after_a_crash() -> None:
    options = ServerOptions(appendonly=True, arguments=("--appendfsync", "always"))
    with RedisServer(redis_program(), options) as server:
        with server.client() as client:
            client.set("key", b"value")
        server.kill()
        server.start()
        with server.client() as client:
            assert client.get("key") == b"value"


def test_a_frozen_server_can_be_stopped() -> None:
    with RedisServer(redis_program()) as server:
        server.freeze()
        server.stop()
    assert not server.directory.exists()


def test_the_error_of_a_server_that_cannot_start_has_the_reason() -> None:
    options = ServerOptions(arguments=("--maxmemory-policy", "nonsense"))
    server = RedisServer(redis_program(), options)
    with pytest.raises(AssertionError, match="nonsense"), server:
        pass
    assert not server.directory.exists()


def test_a_server_ends_when_the_test_run_is_killed() -> None:
    script = (
        "import os, signal; from tests.support.servers import *; server = RedisServer(redis_program());"
        "server.start(); print(server.pid, server.directory, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    output = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=False).stdout
    pid, directory = output.decode().split()
    subprocess.run(["rm", "-r", directory], check=True)
    subprocess.run(["tail", "--pid", pid, "-f", "/dev/null"], timeout=30, check=True)
