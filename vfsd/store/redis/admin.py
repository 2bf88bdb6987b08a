"""Administration of a Redis server with redis-py: everything except the data path.

It opens connections (credentials, TLS, Sentinels), checks the server, and runs the commands that claim, release, list
and destroy scopes. All methods block: call them in a worker thread.
"""

import socket
import ssl
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import redis
import redis.sentinel

from vfsd.errors import StoreError, StoreReadOnly, StoreRefused, StoreUnreachable, UsageError, clause
from vfsd.store.base import Capacity, Fsync
from vfsd.store.redis.diagnosis import what_answers
from vfsd.store.redis.errors import refusal
from vfsd.store.redis.url import connection_pool
from vfsd.store.url import hidden

_FIRST_WITH_WAITAOF = (7, 2)
_OLDEST = 7
"""The first major version that understands scripts with flags."""

_CLIENT_ERRORS = (redis.RedisError, OSError)
"""What redis-py raises. OSError comes if the process has no file descriptor left: redis-py reads a file to connect."""

_UNKNOWN_CAPACITY = 1 << 40
"""The capacity (bytes) to report if the server does not tell. It is large, because some programs check the free space
before they write."""

_START_HINT = "start Redis there, or name another store with --store redis://HOST:PORT/DB or --store sqlite:PATH"
_ADDRESS_HINT = "check host and port of the store"
_SENTINEL_HINT = "check the addresses of the Sentinels, and the name of the service"
_HINTS: dict[type[OSError], str] = {
    socket.gaierror: "check the name of the host",
    ssl.SSLCertVerificationError: "name the file with its authority in the URL: ?ssl_ca_certs=FILE",
    PermissionError: "let this user use that socket: see unixsocketperm in redis.conf",
}
"""What to do about a failed system call."""
_SOCKET_FORM = "expected unix://PATH with the absolute path of the socket, as in unix:///run/redis/redis.sock"
_URL_FORMS = "expected redis://[USER:PASSWORD@]HOST:PORT/DB or redis+sentinel://HOST:PORT[,HOST:PORT]/SERVICE[/DB]"


class RedisAdmin:
    """The administration of the Redis server that *url* names. *timeout* (s) limits each connect and each answer."""

    def __init__(self, url: str, timeout: float) -> None:
        self.label = hidden(url)
        try:
            self._pool = connection_pool(url, timeout)
        except (ValueError, TypeError):  # their text may quote a password of the URL
            expected = _SOCKET_FORM if url.startswith("unix:") else _URL_FORMS
            raise UsageError(f"store {self.label}: not understood; {expected}") from None
        self._has_answered = False
        self._client: Any = redis.Redis(connection_pool=self._pool)  # Any: the type of a reply depends on the command

    def connect(self) -> socket.socket:
        """Return a new connected socket. redis-py has done TLS, authentication and the choice of the database.

        redis-py has no public way to give a connection away, so this takes its private socket. A test checks that this
        works with the installed version. Raises StoreUnreachable, StoreRefused.
        """
        try:
            connection: Any = self._pool.make_connection()
            connection.connect()
        except _CLIENT_ERRORS as error:
            raise self._translated(error) from error
        self._has_answered = True
        connected: socket.socket = connection._sock  # noqa: SLF001 (see above)
        connection._sock = None  # noqa: SLF001 (the socket is ours now: redis-py must not close it)
        return connected

    def execute(self, *words: bytes | str | int) -> Any:
        """Return the reply to one command. Raises StoreError for an error reply or a lost connection."""
        try:
            reply = self._client.execute_command(*words)
        except _CLIENT_ERRORS as error:
            raise self._translated(error) from error
        self._has_answered = True
        return reply

    def pipeline(self, commands: Iterable[Sequence[bytes | str | int]]) -> list[Any]:
        """Send *commands* together, without a transaction, and return their replies. Raises as :meth:`execute`."""
        pipe: Any = self._client.pipeline(transaction=False)
        for words in commands:
            pipe.execute_command(*words)
        try:
            return list(pipe.execute())
        except _CLIENT_ERRORS as error:
            raise self._translated(error) from error

    def script(self, body: bytes, keys: tuple[bytes, ...], *arguments: bytes | str | int) -> Any:
        """Run the Lua script *body*, and return its answer. Raises as :meth:`execute`."""
        return self.execute("EVAL", body, len(keys), *keys, *arguments)

    def scan(self, key: bytes, count: int) -> Iterator[dict[bytes, bytes]]:
        """Yield the fields and values of the hash at *key*, about *count* at a time. Raises as :meth:`execute`."""
        cursor = 0
        while True:
            cursor, fields = self.execute("HSCAN", key, cursor, "COUNT", count)
            yield fields
            if not cursor:
                return

    def close(self) -> None:
        """Close all administrative connections."""
        self._pool.disconnect()

    # --- preflight

    def preflight(self, fsync: Fsync, *, allow_eviction: bool) -> list[str]:
        """Refuse a server that is not fit to keep files. Return warnings for the operator, one line each.

        Raises StoreRefused, StoreReadOnly, StoreUnreachable.
        """
        try:
            info: dict[str, Any] = self._client.info("all")
        except redis.exceptions.NoPermissionError as error:
            why = clause(error)
            return [f"the store {self.label} does not let itself be examined ({why}): eviction and persistence unknown"]
        except _CLIENT_ERRORS as error:
            raise self._translated(error) from error
        self._check_version(str(info.get("redis_version", "0")))
        if fsync.aof:
            self._check_aof(info)
        if info.get("role") == "slave":
            raise StoreReadOnly(f"the store {self.label} is a replica of {info.get('master_host')}: name the master")
        return [*self._check_eviction(info, allow_eviction=allow_eviction), *self._check_persistence(info)]

    def _check_version(self, version: str) -> None:
        if int(version.partition(".")[0]) < _OLDEST:
            raise StoreRefused(f"the store {self.label} is Redis {version}; vfsd needs {_OLDEST}.0 or later, or Valkey")

    def _check_aof(self, info: dict[str, Any]) -> None:
        """Refuse a server that can never confirm that data is on its disk."""
        if not info.get("aof_enabled"):
            raise StoreRefused(f"the store {self.label} has no append-only file to wait for: set appendonly yes")
        version = tuple(map(int, str(info.get("redis_version", "0.0")).split(".")[:2]))
        if version < _FIRST_WITH_WAITAOF:
            raise StoreRefused(f"--fsync waitaof needs Redis 7.2 or Valkey; {self.label} is {info['redis_version']}")

    def _check_eviction(self, info: dict[str, Any], *, allow_eviction: bool) -> list[str]:
        policy = info.get("maxmemory_policy", "noeviction")
        if policy == "noeviction":
            return []
        what = f"the store {self.label} has maxmemory-policy {policy}: it may drop files when memory is short"
        if not allow_eviction:
            raise StoreRefused(f"{what}; set it to noeviction, or mount with --allow-eviction")
        return [what]

    def _check_persistence(self, info: dict[str, Any]) -> list[str]:
        if info.get("aof_enabled"):
            return []
        try:
            snapshots = self.execute("CONFIG", "GET", "save")
        except StoreRefused:
            return [f"the store {self.label} has no append-only file, and does not tell whether it takes snapshots"]
        saving = snapshots.get("save") if isinstance(snapshots, dict) else (snapshots or [b"", b""])[1]
        if saving:
            return [f"the store {self.label} keeps snapshots only: its crash loses what came after the last one"]
        return [
            f"the store {self.label} does not persist (no append-only file, no snapshots): its crash loses everything"
        ]

    def capacity(self) -> Capacity:
        """Return ``maxmemory``, or the memory of the server's host if no limit is set, and how much of it is free."""
        try:
            info: dict[str, Any] = self._client.info("memory")
        except redis.exceptions.NoPermissionError:
            return Capacity(_UNKNOWN_CAPACITY, _UNKNOWN_CAPACITY)
        except _CLIENT_ERRORS as error:
            raise self._translated(error) from error
        total = int(info.get("maxmemory") or info.get("total_system_memory") or 0)
        return Capacity(total, max(0, total - int(info.get("used_memory", 0))))

    def _translated(self, error: Exception) -> StoreError:
        """Return the StoreError for *error* of redis-py. Its message has the address, and never a password."""
        if isinstance(error, redis.AuthenticationError):
            why = clause(error)
            return StoreRefused(f"the store {self.label} refuses the credentials: {why}; check user and password")
        if isinstance(error, (redis.ConnectionError, redis.TimeoutError, redis.InvalidResponse, OSError)):
            return StoreUnreachable(f"cannot reach the store {self.label}: {self._why_unreachable(error)}")
        code = {redis.OutOfMemoryError: "OOM", redis.ReadOnlyError: "READONLY", redis.BusyLoadingError: "LOADING"}
        prefix = next((word for kind, word in code.items() if isinstance(error, kind)), "")
        text = clause(error)
        return refusal(self.label, text if text.startswith(prefix) else f"{prefix} {text}")

    def _why_unreachable(self, error: Exception) -> str:
        """Return why no Redis answers, and what to do. Until one has answered, look what is there instead."""
        if isinstance(error, redis.sentinel.MasterNotFoundError):  # its text is the inner state of redis-py
            return f"no Sentinel there names a master of that service; {_SENTINEL_HINT}"
        found = self._other_server()
        if found is not None:
            return found if ";" in found else f"{found}; {_ADDRESS_HINT}"
        cause = _system_error(error)
        if cause is None:
            return f"{clause(error)}; {_START_HINT}"
        hint = next((hint for kind, hint in _HINTS.items() if isinstance(cause, kind)), _START_HINT)
        return f"{clause(getattr(cause, 'verify_message', None) or cause.strerror or cause)}; {hint}"

    def _other_server(self) -> str | None:
        """Return what is there instead of a Redis, unless one has answered before. Sentinels name no address."""
        if self._has_answered or isinstance(self._pool, redis.sentinel.SentinelConnectionPool):
            return None
        with_tls = issubclass(self._pool.connection_class, redis.SSLConnection)
        return what_answers(self._pool.connection_kwargs, with_tls=with_tls)


def _system_error(error: BaseException) -> OSError | None:
    """Return the failed system call that *error* of redis-py comes from, if it comes from one."""
    cause = error if isinstance(error, OSError) else error.__cause__ or error.__context__
    return cause if isinstance(cause, OSError) and cause.errno and cause.strerror else None
