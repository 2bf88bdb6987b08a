"""Everything about a Redis server but the data path, by redis-py, blocking: call it from a worker thread.

Connections (credentials, TLS, Sentinels), preflight, changing hands of scopes, listings.
"""

import socket
from collections.abc import Iterable, Sequence
from typing import Any

import redis

from vfsd.errors import StoreError, StoreReadOnly, StoreRefused, StoreUnreachable, UsageError
from vfsd.store.base import Capacity, Fsync
from vfsd.store.redis.errors import refusal
from vfsd.store.redis.url import connection_pool
from vfsd.store.url import hidden

_FIRST_WITH_WAITAOF = (7, 2)
_OLDEST = 7
"""Major version that understands scripts with flags."""

_CLIENT_ERRORS = (redis.RedisError, OSError)
"""What redis-py raises; the latter when the process has no descriptor left, for it reads a file to connect."""

_UNKNOWN_CAPACITY = 1 << 40
"""Bytes of room to show where the server does not tell: programs that look before they write must not find none."""

_UNREACHABLE_HINT = "start Redis there, or name another store with --store redis://HOST:PORT/DB or --store sqlite:PATH"
_URL_FORMS = "expected redis://[USER:PASSWORD@]HOST:PORT/DB or redis+sentinel://HOST:PORT[,HOST:PORT]/SERVICE[/DB]"


class RedisAdmin:
    """One Redis server as its URL names it. *timeout* (s) bounds each connect and each answer."""

    def __init__(self, url: str, timeout: float) -> None:
        self.label = hidden(url)
        try:
            self._pool = connection_pool(url, timeout)
        except (ValueError, TypeError):  # their text may quote parts of the URL: a password among them
            raise UsageError(f"store {self.label}: not understood; {_URL_FORMS}") from None
        self._client: Any = redis.Redis(connection_pool=self._pool)  # typed loosely: its replies depend on the command

    def connect(self) -> socket.socket:
        """Return a new connected socket: TLS, credentials and database all settled by redis-py.

        redis-py offers no public way to hand a connection over, so its private socket is taken; a test holds
        this to the installed version. Raises StoreUnreachable, StoreRefused.
        """
        try:
            connection: Any = self._pool.make_connection()
            connection.connect()
        except _CLIENT_ERRORS as error:
            raise self._translated(error) from error
        connected: socket.socket = connection._sock  # noqa: SLF001 (see above)
        connection._sock = None  # noqa: SLF001 (the socket is ours now: redis-py must not close it)
        return connected

    def execute(self, *words: bytes | str | int) -> Any:
        """Return the reply to one command. Raises the StoreError that an error reply or a lost server means."""
        try:
            return self._client.execute_command(*words)
        except _CLIENT_ERRORS as error:
            raise self._translated(error) from error

    def pipeline(self, commands: Iterable[Sequence[bytes | str | int]]) -> list[Any]:
        """Return the replies to *commands*, sent together, outside a transaction."""
        pipe: Any = self._client.pipeline(transaction=False)
        for words in commands:
            pipe.execute_command(*words)
        try:
            return list(pipe.execute())
        except _CLIENT_ERRORS as error:
            raise self._translated(error) from error

    def script(self, body: bytes, keys: tuple[bytes, ...], *arguments: bytes | str | int) -> Any:
        """Return what a Lua script answers."""
        return self.execute("EVAL", body, len(keys), *keys, *arguments)

    def close(self) -> None:
        """Close all administrative connections."""
        self._pool.disconnect()

    # --- preflight

    def preflight(self, fsync: Fsync, *, allow_eviction: bool) -> list[str]:
        """Refuse a server unfit for keeping files, and return what the operator should know, a line each."""
        try:
            info: dict[str, Any] = self._client.info("all")
        except redis.exceptions.NoPermissionError as error:
            return [
                f"the store {self.label} does not let itself be examined ({error}): eviction and persistence unknown"
            ]
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
        """Refuse a server that could never confirm that its disk has something."""
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
            return [f"the store {self.label} has no append-only file; whether it takes snapshots it does not tell"]
        saving = snapshots.get("save") if isinstance(snapshots, dict) else (snapshots or [b"", b""])[1]
        if saving:
            return [f"the store {self.label} keeps snapshots only: its crash loses what came after the last one"]
        return [
            f"the store {self.label} does not persist (no append-only file, no snapshots): its crash loses everything"
        ]

    def capacity(self) -> Capacity:
        """Return ``maxmemory``, or the memory of the server's machine, and what is left of it."""
        try:
            info: dict[str, Any] = self._client.info("memory")
        except redis.exceptions.NoPermissionError:
            return Capacity(_UNKNOWN_CAPACITY, _UNKNOWN_CAPACITY)
        except _CLIENT_ERRORS as error:
            raise self._translated(error) from error
        total = int(info.get("maxmemory") or info.get("total_system_memory") or 0)
        return Capacity(total, max(0, total - int(info.get("used_memory", 0))))

    def _translated(self, error: Exception) -> StoreError:
        """Return what redis-py's *error* means here; the message names the address, never a password."""
        if isinstance(error, redis.AuthenticationError):
            return StoreRefused(f"the store {self.label} refuses the credentials: {error}; check user and password")
        if isinstance(error, (redis.ConnectionError, redis.TimeoutError, OSError)):
            return StoreUnreachable(f"cannot reach the store {self.label}: {error}; {_UNREACHABLE_HINT}")
        code = {redis.OutOfMemoryError: "OOM", redis.ReadOnlyError: "READONLY", redis.BusyLoadingError: "LOADING"}
        prefix = next((word for kind, word in code.items() if isinstance(error, kind)), "")
        text = str(error)
        return refusal(self.label, text if text.startswith(prefix) else f"{prefix} {text}")
