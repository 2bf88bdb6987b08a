"""A hydrated scope with everything that answers for it: built whole, in one place, before anything is mounted."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

from vfsd.config import MountConfig
from vfsd.control.handlers.files import file_operations
from vfsd.control.handlers.scope import scope_operations
from vfsd.control.handlers.seeds import seed_operations
from vfsd.control.server import ControlHandler
from vfsd.files.read import FileReader
from vfsd.files.resolve import PathResolver
from vfsd.files.seed import Seeding
from vfsd.files.walk import Listings
from vfsd.files.write import FileWriter
from vfsd.fuse.kernel_cache import FuseKernelCache
from vfsd.fuse.session import FuseSession
from vfsd.scope.background import BackgroundTasks
from vfsd.scope.memory_limit import MemoryLimit
from vfsd.scope.volume import Backing, Volume
from vfsd.seeds.overlay import SeedOverlay
from vfsd.seeds.root_references import RootReferences
from vfsd.seeds.seeded_volume import VolumeOptions, seeded_volume
from vfsd.tree.tree import Tree


@dataclass(frozen=True, slots=True)
class MountedScope:
    """What serves one scope: its tree, the volume, its seeds, the FUSE session, and access to files by path.

    *memory* is the limit of the daemon's memory, and what was measured of it.
    """

    config: MountConfig
    tree: Tree
    memory: MemoryLimit
    volume: Volume
    overlay: SeedOverlay
    session: FuseSession
    reader: FileReader
    writer: FileWriter
    seeding: Seeding

    def control_operations(self, drop: Callable[[], Awaitable[None]]) -> dict[str, ControlHandler]:
        """Return what the control socket answers. *drop* destroys everything that is stored of the scope."""
        return {
            **scope_operations(self.config, self.volume, self.overlay, drop, self.session.stop),
            **file_operations(self.reader, self.writer, self.volume.check_memory),
            **seed_operations(self.seeding),
        }


def build(config: MountConfig, tree: Tree, backing: Backing, nursery: trio.Nursery) -> MountedScope:
    """Return what serves *tree*, kept by *backing*, as *config* says. *nursery* runs what outlives a request."""
    background = BackgroundTasks(nursery)
    kernel = FuseKernelCache(tree, background)
    memory = MemoryLimit(config.max_memory)
    listings = Listings(tree)
    options = VolumeOptions(config.directory_mtime, memory, (listings,))
    seeded = seeded_volume(tree, backing, background, kernel, options)
    volume, overlay = seeded.volume, seeded.overlay
    resolver = PathResolver(tree, os.fsencode(config.mountpoint))
    references = RootReferences(tree, overlay, config.loose_references) if config.loose_references else None
    return MountedScope(
        config,
        tree,
        memory,
        volume,
        overlay,
        FuseSession(volume, config, kernel, references),
        FileReader(tree, resolver, config.owner, listings),
        FileWriter(volume, tree, resolver, kernel.forget),
        Seeding(seeded, tree, resolver, keep=config.keep_stored),
    )
