"""The control operations on a whole scope: ``info`` and ``destroy``."""

from collections.abc import Awaitable, Callable
from typing import Any

from vfsd import __version__
from vfsd.config import MountConfig
from vfsd.control.arguments import Arguments
from vfsd.control.server import ControlHandler, FinalAnswer
from vfsd.scope.volume import Volume
from vfsd.seeds.overlay import SeedOverlay


def scope_operations(
    config: MountConfig,
    volume: Volume,
    overlay: SeedOverlay,
    drop: Callable[[], Awaitable[None]],
    stop: Callable[[], None],
) -> dict[str, ControlHandler]:
    """Return the handlers for the scope of *volume* with its *overlay*, mounted as *config* says.

    *drop* deletes everything that is stored of it. *stop* ends the mount.
    """

    async def info(arguments: Arguments) -> dict[str, Any]:
        error = volume.last_error
        return {
            "scope": config.scope,
            "mountpoint": config.mountpoint,
            "store": volume.store_label,
            "version": __version__,
            "files": volume.files,
            "bytes": volume.used,
            "pending": volume.pending,
            "read_only": config.read_only,
            "last_error": error and {"when_ns": error[0], "what": error[1]},
            "seeded": overlay.files,
            "shadowed": overlay.shadowing,
        }

    async def destroy(arguments: Arguments) -> FinalAnswer:
        await drop()
        return FinalAnswer({}, stop)

    return {"info": info, "destroy": destroy}
