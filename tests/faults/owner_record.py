"""Change the owner record of a scope directly in the store."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

from tests.support.servers import RedisServer
from tests.support.stores import DurableBackend, RedisBackend, SqliteBackend
from vfsd.store.owner import Owner


def move_owner_to_another_host(store: DurableBackend, server: RedisServer, scope: str) -> None:
    """Let the owner of *scope* be on another host. This host then cannot find out whether the owner is alive."""

    def on_another_host(text: bytes | str) -> str:
        record: dict[str, Any] = json.loads(text)
        owner = Owner(**{**record, "host": "far.example", "host_id": "another boot/another namespace"})
        return owner.to_json()

    change = _in_redis if isinstance(store, RedisBackend) else _in_sqlite
    change(store, server, scope, on_another_host)


def _in_redis(_place: DurableBackend, server: RedisServer, scope: str, change: Callable[[bytes], str]) -> None:
    key = f"vfsd:{{{scope}}}:scope"
    with server.client() as client:
        record = client.hget(key, "owner")
        assert isinstance(record, bytes)
        client.hset(key, "owner", change(record))


def _in_sqlite(store: DurableBackend, _server: RedisServer, scope: str, change: Callable[[str], str]) -> None:
    assert isinstance(store, SqliteBackend)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        (record,) = connection.execute("SELECT owner FROM scopes WHERE name = ?", (scope,)).fetchone()
        connection.execute("UPDATE scopes SET owner = ? WHERE name = ?", (change(record), scope))
