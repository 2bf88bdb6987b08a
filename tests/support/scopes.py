"""A scope that is used without a mount: a volume with seeds over a store in memory, and stores that interfere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import trio

from tests.support.stores import remote_owner
from vfsd.config import DirectoryMtime
from vfsd.scope.background import BackgroundTasks
from vfsd.scope.hooks import KernelCache, NoKernelCache
from vfsd.scope.hydrate import hydrate
from vfsd.scope.memory_limit import MemoryLimit
from vfsd.scope.volume import Backing, Volume
from vfsd.seeds.overlay import SeedOverlay
from vfsd.seeds.seeded_volume import SeededVolume, VolumeOptions, seeded_volume
from vfsd.store.base import Claim, Claimed, ClaimTerms
from vfsd.store.memory import MemoryClaim, MemoryStore
from vfsd.store.owner import Owner
from vfsd.tree.change import Change
from vfsd.tree.tree import Tree

SCOPE = "scope"


class InterferingStore(MemoryStore):
    """A store in memory. A test overrides :meth:`commit` to delay commits, refuse them or leave them in doubt."""

    async def claim(self, scope: str, owner: Owner, terms: ClaimTerms) -> Claim:
        claim = await super().claim(scope, owner, terms)
        return _InterferedClaim(self, Claimed(claim.scope, claim.owner, claim.limits, claim.created))

    async def commit(self, claim: MemoryClaim, change: Change) -> None:
        """Store *change*."""
        await MemoryClaim.commit(claim, change)


class _InterferedClaim(MemoryClaim):
    def __init__(self, store: InterferingStore, claimed: Claimed) -> None:
        super().__init__(store, claimed)
        self._interfering = store

    async def commit(self, change: Change) -> None:
        await self._interfering.commit(self, change)


class ScopeInMemory(NamedTuple):
    """A scope in *store*, claimed by *claim*."""

    tree: Tree
    seeded: SeededVolume
    store: MemoryStore
    claim: Claim

    @property
    def volume(self) -> Volume:
        """The façade."""
        return self.seeded.volume

    @property
    def overlay(self) -> SeedOverlay:
        """The seeds."""
        return self.seeded.overlay


@asynccontextmanager
async def scope_in_memory(
    store: MemoryStore | None = None,
    *,
    terms: ClaimTerms = ClaimTerms(),  # noqa: B008 (immutable)
    memory: int = 0,
    directory_mtime: DirectoryMtime = DirectoryMtime.SKILLS,
    kernel: KernelCache = NoKernelCache(),  # noqa: B008 (it has no state)
) -> AsyncIterator[ScopeInMemory]:
    """Claim the scope of *store*, load it, and release it at the end. A new scope gets its root directory."""
    store = store or MemoryStore()
    claim = await store.claim(SCOPE, remote_owner(), terms)
    tree = await hydrate(store, SCOPE, lambda _done, _total: None)
    async with trio.open_nursery() as nursery:
        options = VolumeOptions(directory_mtime, MemoryLimit(memory))
        seeded = seeded_volume(tree, Backing(store, claim), BackgroundTasks(nursery), kernel, options)
        if seeded.volume.is_empty:
            await seeded.volume.make_root(0, 0)
        yield ScopeInMemory(tree, seeded, store, claim)
        nursery.cancel_scope.cancel()
    await claim.release()
