"""From a store URL to redis-py's connections: to one server, or to the master that Sentinels name.

``redis+sentinel://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…]/SERVICE[/DB]`` asks the Sentinels for each new connection, so
a mount follows a failover. ``?sentinel_username=…&sentinel_password=…`` are the credentials for the Sentinels.

A URL may set only the options of redis-py that say how to reach a server. vfsd sets all others, and relies on them.
"""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from vfsd.errors import UsageError
from vfsd.store.url import hidden

SENTINEL = "redis+sentinel"
_SENTINEL_PORT = 26379

_LOGIN = frozenset({"db", "username", "password"})
_TLS = frozenset(
    {
        "ssl_ca_certs",
        "ssl_ca_path",
        "ssl_certfile",
        "ssl_keyfile",
        "ssl_password",
        "ssl_cert_reqs",
        "ssl_check_hostname",
    }
)
_OPTIONS = {
    "redis": _LOGIN,
    "unix": _LOGIN,
    "rediss": _LOGIN | _TLS,
    SENTINEL: frozenset({"sentinel_username", "sentinel_password"}),
}
"""The options that a URL may have after its question mark, by scheme."""


def connection_pool(url: str, timeout: float) -> redis.ConnectionPool:
    """Return the pool for *url*. A connect or an answer may take *timeout* seconds. Raises UsageError, ValueError.

    redis-py's own retries are off: a retry may execute a command twice, and a claim must not run twice.
    """
    _check_options(url)
    options: dict[str, Any] = {
        "protocol": 2,
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "client_name": "vfsd",
    }
    if urlsplit(url).scheme == SENTINEL:
        return _sentinel_pool(url, options)
    _check_port(url)
    _check_database(url)
    if urlsplit(url).scheme == "unix" and not urlsplit(url).path:
        raise ValueError("expected the path of a socket")
    return redis.ConnectionPool.from_url(url, **options)


def _check_options(url: str) -> None:
    """Refuse an option that a URL may not set: in redis-py it would override vfsd's own. Raises UsageError.

    The message does not show an option without a value: it may be the end of a password that has a raw ``&``.
    """
    parts = urlsplit(url)
    known = _OPTIONS[parts.scheme]
    for setting in filter(None, parts.query.split("&")):
        name, equals, _ = setting.partition("=")
        if not equals or name not in known:
            what = f"unknown option {name!r}" if equals else "an option without a value"
            raise UsageError(f"store {hidden(url)}: {what}; {parts.scheme} takes {', '.join(sorted(known))}")


def _check_port(url: str) -> None:
    """Refuse a port that there cannot be. Raises UsageError, without the port: it may be a part of a password."""
    try:
        port = urlsplit(url).port
    except ValueError:
        port = 0
    if port == 0:
        raise UsageError(f"store {hidden(url)}: its port is no number from 1 to 65535; write HOST:PORT/0")


def _check_database(url: str) -> None:
    """Refuse a database that is not a number: redis-py would use database 0 instead. Raises UsageError."""
    parts = urlsplit(url)
    database = parts.path.strip("/")
    if parts.scheme != "unix" and database and not (database.isascii() and database.isdigit()):
        raise UsageError(f"store {hidden(url)}: the database {database!r} is no number; write HOST:PORT/0")


def _sentinel_pool(url: str, options: dict[str, Any]) -> redis.ConnectionPool:
    parts = urlsplit(url)
    credentials, _, addresses = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/")
    if not (addresses and service):
        raise ValueError("expected redis+sentinel://HOST:PORT[,HOST:PORT]/SERVICE[/DB]")
    user, _, password = credentials.partition(":")
    query = dict(parse_qsl(parts.query))
    server_login = {"username": unquote(user) or None, "password": unquote(password) or None, "db": int(database or 0)}
    sentinel_login = {"username": query.get("sentinel_username"), "password": query.get("sentinel_password")}
    sentinel = Sentinel(_addresses(addresses), sentinel_kwargs={**options, **sentinel_login})  # type: ignore[no-untyped-call]  # untyped
    return SentinelConnectionPool(service, sentinel, **options, **server_login)  # type: ignore[no-untyped-call]  # untyped


def _addresses(text: str) -> list[tuple[str, int]]:
    """Return host and port of each Sentinel in the comma-separated *text*."""
    texts = (item if ":" in item else f"{item}:{_SENTINEL_PORT}" for item in text.split(","))
    return [(host, int(port)) for host, _, port in (item.rpartition(":") for item in texts)]
