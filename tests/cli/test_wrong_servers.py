"""A store that is no Redis, or is spoken to in the wrong way: one line says what answers there, and what to do."""

import http.server
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.cli import failure
from tests.support.files import unprivileged
from tests.support.mounted import run_vfsd
from tests.support.servers import RedisServer, ServerOptions, redis_program
from vfsd.errors import StoreUnreachable
from vfsd.store.redis.admin import RedisAdmin

CHECK = "; check host and port of the store"


def refusal(url: str, status: int = 3) -> str:
    """Return what ``vfsd scopes`` says about the store *url*, after the name of the store."""
    line = failure(run_vfsd("scopes", "--store", url, env={**os.environ}), status)
    assert ".;" not in line
    assert ".:" not in line
    before, _, why = line.partition(f"{url}: ")
    assert before in {"cannot reach the store ", "store "}
    return why


@contextmanager
def answering(banner: bytes, answer: bytes, *, hangs_up: bool = False) -> Iterator[int]:
    """Run a server that says *banner* at once and *answer* to every line, and yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):  # the end of the test closes the listener
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=talk, args=(connection,), daemon=True).start()

        def talk(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                connection.sendall(banner)
                while connection.recv(4096):
                    connection.sendall(answer)
                    if hangs_up:
                        return

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_an_http_server(scheme: str) -> None:
    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the library's name)
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        why = refusal(f"{scheme}://127.0.0.1:{server.server_port}/0")
        server.shutdown()
    assert why == f"an HTTP server answers there, not Redis{CHECK}"


SERVERS = {
    "nginx": (b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server answers there, not Redis"),
    "ssh": (b"SSH-2.0-OpenSSH_9.2p1\r\n", b"", "an SSH server answers there, not Redis"),
    "memcached": (b"", b"ERROR\r\n", "memcached answers there, or the like, not Redis"),
    "smtp": (b"220 mail.example ESMTP.\r\n", b"", "what answers there is no Redis: it says '220 mail.example ESMTP.'"),
    "pop": (b"+OK \x1b[2J\r\n", b"+OK\r\n", r"what answers there is no Redis: it says '+OK \x1b[2J'"),
    "imap": (b"* OK ready\r\n", b"", "what answers there is no Redis: it says '* OK ready'"),
}


@pytest.mark.parametrize(("banner", "answer", "why"), SERVERS.values(), ids=SERVERS)
def test_another_server(banner: bytes, answer: bytes, why: str) -> None:
    with answering(banner, answer) as port:
        assert refusal(f"redis://127.0.0.1:{port}/0") == why + CHECK


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
def test_a_server_that_says_nothing(scheme: str) -> None:
    with answering(b"", b"") as port:
        why = refusal(f"{scheme}://127.0.0.1:{port}/0")
    assert why == f"it accepts connections, but says nothing for 1 s: it is no Redis, or it hangs{CHECK}"


def test_a_server_that_hangs_up() -> None:
    with answering(b"", b"", hangs_up=True) as port:
        assert refusal(f"redis://127.0.0.1:{port}/0").startswith("Connection closed by server; start Redis there, or")


def test_tls_and_no_tls() -> None:
    with RedisServer(redis_program(), ServerOptions(tcp=True, tls=True)) as server:
        why = refusal(f"redis://127.0.0.1:{server.tls_port}/0")
        assert why == "the server there expects TLS; write rediss:// instead of redis://"
        why = refusal(f"rediss://127.0.0.1:{server.port}/0")
        assert why == "Redis answers there without TLS; write redis:// instead of rediss://"
        why = refusal(f"rediss://127.0.0.1:{server.tls_port}/0")
        assert why == "self-signed certificate; name the file with its authority in the URL: ?ssl_ca_certs=FILE"


def test_nobody_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert refusal(f"redis://127.0.0.1:{port}/0").startswith("Connection refused; start Redis there, or name another")
    assert refusal(f"unix://{tmp_path}/none").startswith("No such file or directory; start Redis there, or name")
    why = refusal("redis://no.such.host.invalid:6379/0")
    assert why.endswith("; check the name of the host")
    why = refusal(f"redis+sentinel://127.0.0.1:{port}/main")
    assert why.startswith("no Sentinel there names a master of that service; check the addresses of the Sentinels")


def test_a_socket_of_another_user() -> None:
    with RedisServer(redis_program()) as server:
        server.directory.chmod(0o755)
        server.socket.chmod(0o700)
        with pytest.raises(StoreUnreachable) as caught, unprivileged():
            RedisAdmin(server.url, timeout=5.0).execute("PING")
    assert str(caught.value) == (
        f"cannot reach the store {server.url}: Permission denied;"
        " let this user use that socket: see unixsocketperm in redis.conf"
    )


def test_a_database_and_a_port_that_are_no_numbers() -> None:
    why = refusal("redis://127.0.0.1:6379/notanumber", 2)
    assert why == "the database 'notanumber' is no number; write HOST:PORT/0"
    assert refusal("redis://127.0.0.1:port/0", 2) == "its port is no number from 1 to 65535; write HOST:PORT/0"
