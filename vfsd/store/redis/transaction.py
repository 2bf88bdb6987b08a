"""A group of changes as one Redis transaction, and the meaning of its replies.

The commands are ``MULTI … EXEC WATCH HGET HLEN HLEN``. The transaction runs only if the scope's header, inodes and
entries have not changed since the last WATCH. The same round trip then watches them again, and reads for the next
transaction the epoch and how many inodes and entries there are. So every commit is fenced without a script (Redis
documentation, "Transactions: optimistic locking using check-and-set"). If a transaction is aborted, the numbers tell
whether somebody has removed records. Each commit also increments ``seq`` in the header: after a lost connection it
tells whether the last commit arrived.
"""

import enum
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from vfsd.store.records import entry_key, entry_value, pack_inode
from vfsd.store.redis.keys import Keys
from vfsd.store.redis.leftovers import DropLeftover, Leftover, NoteLeftovers, RedisOp
from vfsd.store.redis.resp import Reply, ReplyError, RespRequest
from vfsd.tree.change import Change, Chunk, DropChunks, DropEntry, DropInode, PutChunks, PutEntry, PutInode

_NOTES_AT_ONCE = 1000
"""How many notes one command writes. A script cannot pass more than about 8,000 words (LUAI_MAXCSTACK)."""


class ExecResult(enum.Enum):
    """The result of a transaction."""

    STORED = enum.auto()
    ABORTED = enum.auto()
    """A watched key changed after the WATCH, so nothing is stored. The scope is fenced, or records were removed, or
    the caller sends it again."""
    REFUSED = enum.auto()
    """The server refused the transaction, so nothing is stored."""
    PARTIAL = enum.auto()
    """Some commands failed and others did not. The cause can only be foreign data under the scope's keys."""


class Watched(NamedTuple):
    """What was read right after the WATCH. A number is a ReplyError if the key does not hold a hash.

    *epoch* is None if the WATCH was refused.
    """

    epoch: bytes | None
    inodes: int | ReplyError
    entries: int | ReplyError


_WATCH_REPLIES = 4
"""WATCH, HGET, HLEN, HLEN."""


class Outcome(NamedTuple):
    """The result, what is watched after it, and the server's message if it refused."""

    result: ExecResult
    watched: Watched
    why: str = ""


def watch(keys: Keys) -> RespRequest:
    """Return the request that arms the fence before the first transaction.

    It also tests whether this user has the permissions that the fence needs: an error among the replies means no.
    """
    request = RespRequest()
    request.add(b"WATCH", keys.scope)
    request.add(b"MULTI")
    request.add(b"EXEC")
    request.add(b"UNWATCH")
    add_watch(request, keys)
    return request


def add_watch(request: RespRequest, keys: Keys) -> None:
    """Append the commands that watch a scope for the next transaction."""
    request.add(b"WATCH", keys.scope, keys.inodes, keys.entries)
    request.add(b"HGET", keys.scope, b"epoch")
    request.add(b"HLEN", keys.inodes)
    request.add(b"HLEN", keys.entries)


def watched(replies: Sequence[Reply]) -> Watched:
    """Return what the last replies, those to :func:`add_watch`, say."""
    watching, epoch, inodes, entries = replies[-_WATCH_REPLIES:]
    return Watched(None if isinstance(watching, ReplyError) else epoch, inodes, entries)


class Transaction(NamedTuple):
    """A request, and the commands of it that must find chunks, by their index in the transaction."""

    request: RespRequest
    content: list[tuple[int, "Command"]]


def encode(keys: Keys, changes: Iterable[Change], header: Sequence[bytes]) -> Transaction:
    """Return one transaction that stores *changes* and sets *header* (field, value, field, value …)."""
    request = RespRequest()
    content = []
    request.add_encoded(_OPENING, 1)
    for index, command in enumerate(commands(keys, [op for change in changes for op in change.ops])):
        request.add(*command.words)
        if command.known:
            content.append((index, command))
    request.add(b"HSET", keys.scope, *header)
    request.add_encoded(_closing(keys), 1 + _WATCH_REPLIES)
    return Transaction(request, content)


_OPENING = b"*1\r\n$5\r\nMULTI\r\n"


@functools.lru_cache(maxsize=1)
def _closing(keys: Keys) -> bytes:
    """Return the encoded end of every transaction on a scope, cached: it is a large part of a small commit."""
    request = RespRequest()
    request.add(b"EXEC")
    add_watch(request, keys)
    return b"".join(request.buffers())


def decode(replies: Sequence[Reply], content: Sequence[tuple[int, "Command"]]) -> Outcome:
    """Return the outcome that the replies to an :func:`encode` request mean. *content* comes from there too."""
    sent, now = replies[:-_WATCH_REPLIES], watched(replies)
    executed = sent[-1]
    if isinstance(sent[0], ReplyError) and not all(isinstance(reply, ReplyError) for reply in sent):
        return Outcome(ExecResult.PARTIAL, now, str(sent[0]))
    if executed is None:
        return Outcome(ExecResult.ABORTED, now)
    if isinstance(executed, ReplyError):
        reasons = [reply for reply in sent if isinstance(reply, ReplyError)]
        return Outcome(ExecResult.REFUSED, now, str(reasons[0]))
    failed = [reply for reply in executed if isinstance(reply, ReplyError)]
    if failed:
        return Outcome(ExecResult.PARTIAL, now, str(failed[0]))
    for index, command in content:
        if command.found(executed[index]) < command.known:
            return Outcome(ExecResult.PARTIAL, now, f"{command.key} has lost chunks")
    return Outcome(ExecResult.STORED, now)


class Command(NamedTuple):
    """The *words* of one command. If it is an HSET, *known* is how many of its fields the server must have had."""

    words: list[Chunk]
    known: int = 0

    @property
    def key(self) -> str:
        """The key that the command changes."""
        return bytes(self.words[1]).decode()

    def found(self, new: int) -> int:
        """Return how many fields the server had. *new* is the answer to HSET: how many it had not."""
        return (len(self.words) - 2) // 2 - new


def commands(keys: Keys, ops: Iterable[RedisOp]) -> list[Command]:
    """Return the Redis commands that store *ops*: one per kind of record, then those for content in their order."""
    put_inodes: list[Chunk] = [b"HSET", keys.inodes]
    put_entries: list[Chunk] = [b"HSET", keys.entries]
    drop_inodes: list[Chunk] = [b"HDEL", keys.inodes]
    drop_entries: list[Chunk] = [b"HDEL", keys.entries]
    content: list[Command] = []
    for op in ops:
        match op:
            case PutInode():
                put_inodes += (b"%d" % op.ino, pack_inode(op.attributes))
            case PutEntry():
                put_entries += (entry_key(op.parent, op.name), entry_value(op.ino, op.cookie))
            case PutChunks() if op.chunks:
                content.append(Command([b"HSET", keys.data(op.ino), *_fields(op)], op.replaced))
            case DropEntry():
                drop_entries.append(entry_key(op.parent, op.name))
            case DropInode():
                drop_inodes.append(b"%d" % op.ino)
                content.append(Command([b"UNLINK", keys.data(op.ino)]))
            case DropChunks() if op.numbers != ():
                content.append(_drop_chunks(keys.data(op.ino), op.numbers))
            case NoteLeftovers():
                content += _write_notes(keys.leftovers, op.leftovers)
            case DropLeftover(leftover):
                content.append(_drop_chunks(keys.data(leftover.ino), leftover.numbers))
                content.append(Command([b"HDEL", keys.leftovers, leftover.field]))
    named = [put_inodes, drop_entries, put_entries, drop_inodes]
    return [Command(words) for words in named if len(words) > 2] + content  # noqa: PLR2004 (more than verb and key)


def _fields(op: PutChunks) -> Iterable[Chunk]:
    for number, chunk in op.chunks.items():
        yield b"%d" % number
        yield chunk


def _drop_chunks(key: bytes, numbers: tuple[int, ...] | None) -> Command:
    if numbers is None:
        return Command([b"UNLINK", key])
    return Command([b"HDEL", key, *(b"%d" % number for number in numbers)])


def _write_notes(key: bytes, leftovers: Sequence[Leftover]) -> Iterator[Command]:
    for start in range(0, len(leftovers), _NOTES_AT_ONCE):
        words: list[Chunk] = [b"HSET", key]
        for leftover in leftovers[start : start + _NOTES_AT_ONCE]:
            words += (leftover.field, leftover.value)
        yield Command(words)


def next_ino(changes: Iterable[Change], known: int) -> int:
    """Return the next unused inode number after *changes*. *known* is that number before them."""
    for change in changes:
        for op in change.ops:
            if isinstance(op, PutInode) and op.ino >= known:
                known = op.ino + 1
    return known
