"""``memory:`` keeps scopes in this process: for tests, and for runs whose files may be lost.

It keeps the same records as the other stores, so that it holds nothing that they cannot hold. It ends with its process.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import trio

from vfsd import clock
from vfsd.errors import Fenced, ScopeBusy, ScopeMissing
from vfsd.store.base import (
    Batch,
    Capacity,
    Claim,
    Claimed,
    ClaimTerms,
    Damage,
    ScopeSummary,
    Store,
    StoreOptions,
)
from vfsd.store.owner import Owner
from vfsd.store.ranges import COUNT_MAX, check_chunk, within
from vfsd.store.records import entry_key, entry_value, pack_inode, unpack_entry, unpack_inode
from vfsd.store.tally import tally
from vfsd.tree.change import (
    ROOT,
    Change,
    Chunk,
    DropChunks,
    DropEntry,
    DropInode,
    Limits,
    Op,
    PutChunks,
    PutEntry,
    PutInode,
    copy_views,
)

_MEMINFO = Path("/proc/meminfo")


@dataclass
class _MemoryScope:
    created_ns: int
    owner: Owner | None = None
    limits: Limits = Limits()
    next_ino: int = ROOT + 1
    inodes: dict[int, bytes] = field(default_factory=dict)
    entries: dict[bytes, bytes] = field(default_factory=dict)
    chunks: dict[int, dict[int, Chunk]] = field(default_factory=dict)

    def store(self, op: Op) -> None:
        match op:
            case PutInode():
                self.inodes[op.ino] = pack_inode(op.attributes)
                self.next_ino = max(self.next_ino, op.ino + 1)
            case DropInode():
                self.inodes.pop(op.ino, None)
                self.chunks.pop(op.ino, None)
            case PutEntry():
                self.entries[entry_key(op.parent, op.name)] = entry_value(op.ino, op.cookie)
            case DropEntry():
                self.entries.pop(entry_key(op.parent, op.name), None)
            case PutChunks():
                self.chunks.setdefault(op.ino, {}).update(op.chunks)
            case DropChunks(numbers=None):
                self.chunks.pop(op.ino, None)
            case DropChunks(numbers=numbers):
                for number in numbers or ():
                    self.chunks.get(op.ino, {}).pop(number, None)

    def records(self) -> Iterator[tuple[str, Callable[[], Op]]]:
        """Yield every record: its key, and a function that reads it. The function raises ValueError for damage."""
        for ino, record in self.inodes.items():
            yield f"inode {ino}", partial(_read_inode, ino, record)
        for key, value in self.entries.items():
            yield f"entry {key!r}", partial(unpack_entry, key, value)
        for ino, chunks in self.chunks.items():
            for number, chunk in chunks.items():
                yield f"chunk {number} of inode {ino}", partial(_read_chunk, ino, number, chunk)


def _summary(name: str, held: _MemoryScope) -> ScopeSummary:
    found = tally(held.inodes.items())
    return ScopeSummary(name, found.files, held.created_ns, held.owner, None, found.bytes, found.changed_ns)


def _read_inode(ino: int, record: bytes) -> Op:
    return PutInode(within(ino, ROOT, COUNT_MAX, "the inode number"), unpack_inode(record))


def _read_chunk(ino: int, number: int, chunk: Chunk) -> Op:
    check_chunk(number, chunk)
    return PutChunks(ino, {number: chunk})


class MemoryClaim(Claim):
    """A claim on a scope of this process. Only a later claim in the same process can end it."""

    def __init__(self, store: "MemoryStore", claimed: Claimed) -> None:
        super().__init__(claimed)
        self._store = store

    @property
    def pending(self) -> int:
        """Nothing ever waits."""
        return 0

    async def keep(self) -> None:
        """Wait: nothing can go away."""
        await trio.sleep_forever()

    async def release(self) -> None:
        """See :meth:`Claim.release`."""
        held = self._store.held.get(self.scope)
        if held is not None and held.owner == self.owner:
            held.owner = None

    async def undo(self) -> None:
        """See :meth:`Claim.undo`."""
        held = self._store.held.get(self.scope)
        if held is not None and held.owner == self.owner:
            del self._store.held[self.scope]

    def raise_if_unusable(self) -> None:
        """See :meth:`Claim.raise_if_unusable`."""
        held = self._store.held.get(self.scope)
        if held is None or held.owner is None or held.owner.token != self.owner.token:
            raise Fenced(f"scope {self.scope} has been claimed by another owner")

    async def commit(self, change: Change) -> None:
        """See :meth:`Claim.commit`."""
        self.raise_if_unusable()
        for _ in copy_views((change,)):
            pass
        held = self._store.held[self.scope]
        for op in change.ops:
            held.store(op)

    async def sync(self) -> None:
        """There is nothing below memory."""


class MemoryStore(Store):
    """Scopes in a dict. *held* are the scopes by name."""

    def __init__(self) -> None:
        self.label = "memory:"
        self.held: dict[str, _MemoryScope] = {}

    async def check(self) -> list[str]:
        """Warn that nothing here outlives the daemon."""
        return ["the store memory: lives in the daemon: everything is gone when it ends"]

    async def claim(self, scope: str, owner: Owner, terms: ClaimTerms) -> Claim:
        """See :meth:`Store.claim`. An owner counts as living until it releases the scope."""
        held, created = self.held.get(scope), False
        if held is None:
            if not terms.create:
                raise ScopeMissing(f"there is no scope {scope} in {self.label}")
            held, created = _MemoryScope(clock.now()), True
            self.held[scope] = held
        if held.owner is not None and not terms.take_over and not held.owner.is_gone():
            raise ScopeBusy(f"scope {scope} is mounted: {held.owner.describe()}")
        held.owner = owner
        held.limits = held.limits.changed_by(terms.limits)
        return MemoryClaim(self, Claimed(scope, owner, held.limits, created))

    async def load(self, scope: str) -> AsyncIterator[Batch]:
        """See :meth:`Store.load`. It yields one batch."""
        held = self._scope(scope)
        ops: list[Op] = []
        damages: list[Damage] = []
        for key, read in held.records():
            try:
                ops.append(read())
            except ValueError as error:
                damages.append(Damage(key, str(error)))
        yield Batch(tuple(ops), tuple(damages), len(ops), len(ops), held.next_ino)

    async def capacity(self) -> Capacity:
        """Return the memory of the machine, and how much of it is available (:manpage:`proc_meminfo(5)`)."""
        lines = (line.split() for line in _MEMINFO.read_text().splitlines())  # noqa: ASYNC240 (procfs never blocks)
        kilobytes = {words[0]: int(words[1]) for words in lines}
        return Capacity(kilobytes["MemTotal:"] << 10, kilobytes["MemAvailable:"] << 10)

    async def scopes(self) -> list[ScopeSummary]:
        """See :meth:`Store.scopes`."""
        return [_summary(name, held) for name, held in sorted(self.held.items())]

    async def drop(self, scope: str) -> None:
        """See :meth:`Store.drop`."""
        owner = self._scope(scope).owner
        if owner is not None and not owner.is_gone():
            raise ScopeBusy(f"scope {scope} is mounted: {owner.describe()}")
        del self.held[scope]

    async def aclose(self) -> None:
        """Nothing is open."""

    def _scope(self, scope: str) -> _MemoryScope:
        if scope not in self.held:
            raise ScopeMissing(f"there is no scope {scope} in {self.label}")
        return self.held[scope]


def open_store(url: str, options: StoreOptions) -> Store:
    """Return a new, empty store. Two mounts never share one."""
    return MemoryStore()
