"""The lowest cost of a commit: the commands that vfsd sends for a change, over a blocking socket, and nothing else.

The code of vfsd plans and encodes the changes before the time is measured. This is not a store: it takes no lease and
checks no fence.
"""

import os
import socket
import stat
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import hiredis

from bench.process import BenchError
from vfsd.store.redis.keys import Keys
from vfsd.store.redis.resp import Reply, ReplyError, RespRequest
from vfsd.store.redis.transaction import encode
from vfsd.tree.change import ROOT, Attributes, Change, PutInode
from vfsd.tree.plan_content import plan_write
from vfsd.tree.plan_names import EntryKey, NewInode, plan_create
from vfsd.tree.tree import Tree

_IOV_MAX = 1024
_RECEIVE = 1 << 18


class RedisConnection:
    """A blocking connection to the Redis server at the unix socket *path*, and the keys of a scope there."""

    def __init__(self, path: Path) -> None:
        self.keys = Keys("bench")
        self._reader = hiredis.Reader()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(os.fspath(path))

    def ask(self, *words: bytes) -> Reply:
        """Return the reply to one command."""
        request = RespRequest()
        request.add(*words)
        return self.call(request)[0]

    def call(self, request: RespRequest) -> list[Reply]:
        """Return the replies to *request*. Raises BenchError if the server refuses a command."""
        self._send(request.buffers())
        replies: list[Reply] = []
        while len(replies) < request.commands:
            reply = self._reader.gets()
            if reply is False:
                self._receive()
            elif isinstance(reply, ReplyError):
                raise BenchError(f"Redis refuses: {reply}")
            else:
                replies.append(reply)
        return replies

    def call_all(self, requests: Iterable[RespRequest]) -> None:
        """Send *requests*, each after the reply to the previous one."""
        for request in requests:
            self.call(request)

    def _receive(self) -> None:
        received = self._socket.recv(_RECEIVE)
        if not received:
            raise BenchError("Redis has closed the connection")
        self._reader.feed(received)

    def _send(self, buffers: Sequence[bytes | memoryview]) -> None:
        for start in range(0, len(buffers), _IOV_MAX):
            part = buffers[start : start + _IOV_MAX]
            sent = self._socket.sendmsg(part)
            if sent < sum(map(len, part)):
                self._socket.sendall(b"".join(part)[sent:])

    def empty(self) -> None:
        """Delete all keys of the server."""
        self.ask(b"FLUSHALL")

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class TransactionRecorder:
    """Collects the transactions that vfsd sends for changes of an empty scope."""

    def __init__(self, keys: Keys) -> None:
        self.requests: list[RespRequest] = []
        self._keys = keys
        self._tree = Tree()
        now = time.time_ns()
        root = Attributes(stat.S_IFDIR | 0o755, 2, 0, 0, 0, 0, now, now, now)
        self._tree.apply(Change((PutInode(ROOT, root),), grows=True))

    def create(self, name: bytes) -> int:
        """Record that the empty file *name* is created in the root directory. Return its inode number."""
        ino = self._tree.allocate()
        new = NewInode(stat.S_IFREG | 0o644, 0, 0)
        change = plan_create(self._tree, EntryKey(ROOT, name), ino, new, time.time_ns())
        self._record(change, b"next", b"%d" % (ino + 1))
        return ino

    def write(self, ino: int, offset: int, data: bytes) -> None:
        """Record that *data* is written at *offset* (in bytes) of file *ino*."""
        self._record(plan_write(self._tree, ino, offset, data, time.time_ns()))

    def _record(self, change: Change, *counted: bytes) -> None:
        self._tree.apply(change)
        header = [b"seq", b"%d" % (len(self.requests) + 1), *counted]
        self.requests.append(encode(self._keys, [change], header).request)
