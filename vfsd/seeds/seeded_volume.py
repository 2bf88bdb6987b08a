"""Building a volume together with its seeds: the one place that decides which hooks a mounted scope has."""

from collections.abc import Sequence
from typing import NamedTuple

from vfsd.config import DirectoryMtime
from vfsd.scope.background import BackgroundTasks
from vfsd.scope.deferred import DeferredWrites
from vfsd.scope.hooks import Hook, KernelCache, NoKernelCache
from vfsd.scope.memory_limit import MemoryLimit
from vfsd.scope.volume import Backing, Volume
from vfsd.seeds.directory_mtime import DirectoryTimes
from vfsd.seeds.overlay import SeedOverlay
from vfsd.tree.tree import Tree


class VolumeOptions(NamedTuple):
    """What is decided about a volume: which directory times move, the limit of memory, and further *hooks*."""

    directory_mtime: DirectoryMtime = DirectoryMtime.SKILLS
    memory: MemoryLimit | None = None
    hooks: Sequence[Hook] = ()


class SeededVolume(NamedTuple):
    """A volume, the overlay of seeds in it, and its rule for directory times."""

    volume: Volume
    overlay: SeedOverlay
    directory_times: DirectoryTimes


def seeded_volume(
    tree: Tree,
    backing: Backing,
    background: BackgroundTasks,
    kernel: KernelCache = NoKernelCache(),  # noqa: B008 (it has no state)
    options: VolumeOptions = VolumeOptions(),  # noqa: B008 (immutable)
) -> SeededVolume:
    """Return the volume of *tree*, which can be seeded. Arguments as for :class:`~vfsd.scope.volume.Volume`."""
    overlay, deferred = SeedOverlay(tree), DeferredWrites(tree)
    newly_stored = (overlay.newly_stored_in, deferred.newly_stored_in)
    times = DirectoryTimes(tree, options.directory_mtime, kernel, overlay.is_stored, newly_stored)
    volume = Volume(
        tree,
        backing,
        background,
        hooks=[overlay, times, *options.hooks],
        deferred=deferred,
        kernel=kernel,
        memory=options.memory or MemoryLimit(0),
    )
    return SeededVolume(volume, overlay, times)
