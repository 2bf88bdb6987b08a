"""Reading a whole scope from Redis, in slices.

Redis runs one command at a time, so one reply with everything would block all other clients. HSCAN may repeat a field
(Redis documentation, SCAN, "guarantees"): that is harmless, because the reader applies the same record twice.
A commit during the reading would mix two states. So the header is compared at the end: each commit changes ``seq``, and
each claim changes ``epoch``. A daemon that holds the claim never meets that error.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import NoReturn

import trio

from vfsd.errors import ScopeChanged, ScopeDamaged, ScopeMissing, StoreUnreachable
from vfsd.store.base import Batch, Damage
from vfsd.store.ranges import check_chunk, chunk_number, inode_number
from vfsd.store.records import check_format, unpack_entry, unpack_inode
from vfsd.store.redis.errors import refusal
from vfsd.store.redis.header import FIELDS, Header, read_header
from vfsd.store.redis.keys import Keys, place
from vfsd.store.redis.leftovers import read_notes
from vfsd.store.redis.resp import ConnectionLost, Reply, ReplyError, RespConnection, RespRequest
from vfsd.tree.change import CHUNK_SIZE, Op, PutChunks, PutInode

_FIELDS_AT_ONCE = b"1000"
_CHUNKS_AT_ONCE = b"64"
_WHOLE_FILE_CHUNKS = 64
"""A file with at most this many chunks is read by one HGETALL."""
_FILES_AT_ONCE = 128
_BYTES_AT_ONCE = 2 << 20


class Loader:
    """Reads *scope* over *link*, which nobody else uses. Each answer may take *timeout* seconds."""

    def __init__(self, link: RespConnection, scope: str, label: str, timeout: float) -> None:
        self._link = link
        self._scope = scope
        self._label = label
        self._keys = Keys(scope)
        self._timeout = timeout
        self._done = 0
        self._total = 0
        self._next_ino = 0
        self._leftovers: dict[int, set[int]] = {}

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """See :meth:`vfsd.store.base.Store.load`."""
        header = await self.header()
        self._next_ino = header.numbers["next"]
        lengths = await self._ask([b"HLEN", self._keys.inodes], [b"HLEN", self._keys.entries])
        self._total = sum(0 if isinstance(length, ReplyError) else length for length in lengths)
        damages = [Damage(place(self._keys.scope, field.encode()), why) for field, why in header.faults.items()]
        damages += await self._read_leftovers()
        yield Batch((), tuple(damages), 0, self._total, self._next_ino)
        sizes: dict[int, int] = {}
        async with aclosing(self._records(self._keys.inodes, self._inode)) as batches:
            async for batch in batches:
                sizes.update(_content_sizes(batch.ops))
                yield batch
        async with aclosing(self._records(self._keys.entries, unpack_entry)) as batches:
            async for batch in batches:
                yield batch
        self._total = self._done + len(sizes)
        async with aclosing(self._content(sizes)) as batches:
            async for batch in batches:
                yield batch
        if (await self.header()).values != header.values:
            raise ScopeChanged(f"scope {self._scope} was written while it was read")

    async def _read_leftovers(self) -> list[Damage]:
        """Learn which chunks are stored, but must read as zeros. Return the notes that cannot be read."""
        key = self._keys.leftovers
        (fields,) = await self._ask([b"HGETALL", key])
        if isinstance(fields, ReplyError):
            return [Damage(key.decode(), str(fields))]
        leftovers, faults = read_notes(dict(_pairs(fields)))
        for leftover in leftovers.values():
            self._leftovers.setdefault(leftover.ino, set()).update(leftover.numbers)
        return [Damage(place(key, field), why) for field, why in faults.items()]

    async def header(self) -> Header:
        """Return the header, if this vfsd can read the scope. Raises ScopeMissing, ScopeDamaged, FormatTooNew.

        Fields that only a claim needs may be damaged: the header says which.
        """
        (values,) = await self._ask([b"HMGET", self._keys.scope, *map(str.encode, FIELDS)])
        if isinstance(values, ReplyError):
            self._raise_damaged_header(f"is not readable ({values})")
        if not any(values):
            raise ScopeMissing(f"there is no scope {self._scope} in the store {self._label}")
        header = read_header(values)
        for name in ("format", "chunk_size"):
            if name in header.faults:
                self._raise_damaged_header(f"is not readable ({name}: {header.faults[name]})")
        check_format(self._scope, header.numbers["format"], header.numbers["chunk_size"], CHUNK_SIZE)
        if header.numbers["dropping"]:
            self._raise_damaged_header("says that it is being destroyed")
        return header

    async def check_header(self) -> None:
        """Refuse a header that no claim can work with. Raises as :meth:`header`."""
        for name, why in (await self.header()).faults.items():
            self._raise_damaged_header(f"is not readable ({name}: {why})", ", or mount with --salvage to read the rest")

    def _raise_damaged_header(self, how: str, or_else: str = "") -> NoReturn:
        key = self._keys.scope.decode()
        raise ScopeDamaged(
            f"the header {key} of scope {self._scope} {how};"
            f" finish with 'vfsd destroy {self._scope}', or restore the key from a backup{or_else}"
        )

    def _inode(self, field: bytes, record: bytes) -> PutInode:
        return PutInode(inode_number(field), unpack_inode(record))

    async def _records(self, key: bytes, unpack: Callable[[bytes, bytes], Op]) -> AsyncGenerator[Batch, None]:
        """Yield the records of the hash *key*, each read by *unpack*."""
        async with aclosing(self._scan(key, _FIELDS_AT_ONCE)) as slices:
            async for fields in slices:
                yield self._unpacked(key, fields, unpack)

    def _unpacked(
        self, key: bytes, fields: Sequence[bytes] | ReplyError, unpack: Callable[[bytes, bytes], Op]
    ) -> Batch:
        if isinstance(fields, ReplyError):
            return self._batch((), [Damage(key.decode(), str(fields))])
        ops: list[Op] = []
        damages: list[Damage] = []
        for field, value in _pairs(fields):
            try:
                ops.append(unpack(field, value))
            except ValueError as error:
                damages.append(Damage(place(key, field), str(error)))
        return self._batch(ops, damages)

    async def _content(self, sizes: dict[int, int]) -> AsyncGenerator[Batch, None]:
        """Yield the chunks of the files in *sizes*. Small files come in groups, and large files in slices.

        A file with leftovers is large, whatever its size.
        """
        most = _WHOLE_FILE_CHUNKS * CHUNK_SIZE
        small = [ino for ino, size in sizes.items() if size <= most and ino not in self._leftovers]
        async with aclosing(self._read_ahead(_bounded_groups(small, sizes))) as answers:
            async for group, replies in answers:
                yield self._chunks(zip(group, replies, strict=True), len(group))
        for ino in sizes.keys() - small:
            async with aclosing(self._scan(self._keys.data(ino), _CHUNKS_AT_ONCE)) as slices:
                async for fields in slices:
                    yield self._chunks([(ino, fields)], 0)
            self._done += 1

    def _chunks(self, files: Iterable[tuple[int, Sequence[bytes] | ReplyError]], count: int) -> Batch:
        ops: list[Op] = []
        damages: list[Damage] = []
        for ino, fields in files:
            if isinstance(fields, ReplyError):
                damages.append(Damage(self._keys.data(ino).decode(), str(fields)))
                continue
            chunks: dict[int, bytes] = {}
            leftovers = self._leftovers.get(ino, ())
            for field, chunk in _pairs(fields):
                try:
                    index = chunk_number(field)
                    if index not in leftovers:
                        check_chunk(index, chunk)
                        chunks[index] = chunk
                except ValueError as error:
                    damages.append(Damage(place(self._keys.data(ino), field), str(error)))
            if chunks:
                ops.append(PutChunks(ino, chunks))
        self._done += count
        return Batch(tuple(ops), tuple(damages), self._done, self._total, self._next_ino)

    def _batch(self, ops: Sequence[Op], damages: Sequence[Damage]) -> Batch:
        self._done += len(ops) + len(damages)
        return Batch(tuple(ops), tuple(damages), self._done, max(self._total, self._done), self._next_ino)

    async def _scan(self, key: bytes, count: bytes) -> AsyncGenerator[Sequence[bytes] | ReplyError, None]:
        """Yield the fields and values of a hash in slices of about *count*; its error reply if *key* is no hash.

        The request for the next slice is sent first, so the server works while the caller uses this slice.
        """
        await self._exchange([[b"HSCAN", key, b"0", b"COUNT", count]], 0)
        while True:
            (reply,) = await self._exchange([], 1)
            if isinstance(reply, ReplyError):
                yield reply
                return
            cursor, fields = reply
            if cursor != b"0":
                await self._exchange([[b"HSCAN", key, cursor, b"COUNT", count]], 0)
            yield fields
            if cursor == b"0":
                return

    async def _read_ahead(self, groups: Iterable[list[int]]) -> AsyncGenerator[tuple[list[int], list[Reply]], None]:
        """Yield each group of files, and the replies with their chunks.

        The request for the next group is sent first, so the server works while the caller uses this group.
        """
        asked: list[int] = []
        for group in groups:
            replies = await self._exchange([[b"HGETALL", self._keys.data(ino)] for ino in group], len(asked))
            if asked:
                yield asked, replies
            asked = group
        yield asked, await self._exchange([], len(asked))

    async def _ask(self, *commands: Sequence[bytes]) -> list[Reply]:
        """Send *commands* together, and return their replies. Raises StoreError for a refusal or a lost link.

        The error reply for a key of a wrong type is among the replies: the scope is damaged there.
        """
        return await self._exchange(commands, len(commands))

    async def _exchange(self, commands: Iterable[Sequence[bytes]], expected: int) -> list[Reply]:
        """Send *commands*, then return the next *expected* replies. Raises as :meth:`_ask`."""
        request = RespRequest()
        for command in commands:
            request.add(*command)
        try:
            replies = await self._link.exchange(request.buffers(), expected, trio.current_time() + self._timeout)
        except ConnectionLost as lost:
            raise StoreUnreachable(f"lost the store {self._label} while reading scope {self._scope}: {lost}") from lost
        for reply in replies:
            if isinstance(reply, ReplyError) and not str(reply).startswith("WRONGTYPE"):
                raise refusal(self._label, str(reply))
        return replies


def _pairs(fields: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return zip(fields[::2], fields[1::2], strict=True)


def _content_sizes(ops: Iterable[Op]) -> Iterator[tuple[int, int]]:
    """Yield inode number and size (bytes) of each regular file that is not empty."""
    for op in ops:
        if isinstance(op, PutInode) and op.attributes.is_regular and op.attributes.size:
            yield op.ino, op.attributes.size


def _bounded_groups(inos: Sequence[int], sizes: dict[int, int]) -> Iterator[list[int]]:
    """Yield *inos* in groups, so that the replies with their content have a bounded size."""
    group: list[int] = []
    held = 0
    for ino in inos:
        group.append(ino)
        held += sizes[ino]
        if len(group) == _FILES_AT_ONCE or held >= _BYTES_AT_ONCE:
            yield group
            group, held = [], 0
    if group:
        yield group
