"""A store of another package: it uses only the public contract, and vfsd finds it only by its entry point.

``example:NAME`` keeps scopes in this process, in the space NAME. All stores that are opened with one NAME share it.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import trio

from vfsd.errors import Fenced, ScopeBusy, ScopeMissing
from vfsd.store.base import Batch, Capacity, Claim, Claimed, ClaimTerms, ScopeSummary, Store, StoreOptions
from vfsd.store.owner import Owner
from vfsd.tree.change import (
    ROOT,
    Change,
    Chunk,
    DropChunks,
    DropEntry,
    DropInode,
    Op,
    PutChunks,
    PutEntry,
    PutInode,
)


@dataclass
class ExampleScope:
    """The records of a scope, and its owner."""

    owner: Owner | None = None
    next_ino: int = ROOT + 1
    inodes: dict[int, PutInode] = field(default_factory=dict)
    entries: dict[tuple[int, bytes], PutEntry] = field(default_factory=dict)
    chunks: dict[int, dict[int, Chunk]] = field(default_factory=dict)

    def apply(self, op: Op) -> None:
        match op:
            case PutInode():
                self.inodes[op.ino] = op
                self.next_ino = max(self.next_ino, op.ino + 1)
            case PutEntry():
                self.entries[op.parent, op.name] = op
            case PutChunks():
                self.chunks.setdefault(op.ino, {}).update((number, bytes(chunk)) for number, chunk in op.chunks.items())
            case DropInode():
                self.inodes.pop(op.ino, None)
                self.chunks.pop(op.ino, None)
            case DropEntry():
                self.entries.pop((op.parent, op.name), None)
            case DropChunks(numbers=None):
                self.chunks.pop(op.ino, None)
            case DropChunks():
                for number in op.numbers or ():
                    self.chunks.get(op.ino, {}).pop(number, None)


class ExampleClaim(Claim):
    """A claim on a scope of *store*."""

    def __init__(self, store: "ExampleStore", claimed: Claimed) -> None:
        super().__init__(claimed)
        self._store = store

    @property
    def pending(self) -> int:
        return 0

    async def keep(self) -> None:
        await trio.sleep_forever()

    async def release(self) -> None:
        scope = self._store.space.get(self.scope)
        if scope is not None and scope.owner == self.owner:
            scope.owner = None

    def raise_if_unusable(self) -> None:
        scope = self._store.space.get(self.scope)
        if scope is None or scope.owner != self.owner:
            raise Fenced(f"scope {self.scope} has another owner")

    async def commit(self, change: Change) -> None:
        self.raise_if_unusable()
        for op in change.ops:
            self._store.space[self.scope].apply(op)

    async def sync(self) -> None:
        pass


class ExampleStore(Store):
    """The scopes of a space."""

    def __init__(self, url: str) -> None:
        self.label = url
        self.space = _spaces.setdefault(url.partition(":")[2], {})

    async def check(self) -> list[str]:
        return []

    async def claim(self, scope: str, owner: Owner, terms: ClaimTerms) -> Claim:
        created = scope not in self.space
        if created and not terms.create:
            raise ScopeMissing(scope)
        found = self.space.setdefault(scope, ExampleScope())
        if found.owner is not None and not terms.take_over:
            raise ScopeBusy(found.owner.describe())
        found.owner = owner
        return ExampleClaim(self, Claimed(scope, owner, terms.limits, created))

    async def load(self, scope: str) -> AsyncIterator[Batch]:
        if scope not in self.space:
            raise ScopeMissing(scope)
        found = self.space[scope]
        ops: list[Op] = [*found.inodes.values(), *found.entries.values()]
        ops += [PutChunks(ino, dict(chunks)) for ino, chunks in found.chunks.items()]
        yield Batch(tuple(ops), (), len(ops), len(ops), found.next_ino)

    async def capacity(self) -> Capacity:
        return Capacity(1 << 30, 1 << 30)

    async def scopes(self) -> list[ScopeSummary]:
        return [
            ScopeSummary(name, len(scope.inodes.keys() - {ROOT}), 0, scope.owner)
            for name, scope in sorted(self.space.items())
        ]

    async def drop(self, scope: str) -> None:
        del self.space[scope]

    async def aclose(self) -> None:
        pass


_spaces: dict[str, dict[str, ExampleScope]] = {}


def open_store(url: str, _options: StoreOptions) -> Store:
    """Return a store: the factory that the entry point names."""
    return ExampleStore(url)
