"""vfsd: ordinary files for agent runs, held in memory, mounted through FUSE, written through to a store.

A program that uses a mount needs nothing from here; :func:`connect` is for what paths cannot say. Importing this loads
no event loop, no store and no FUSE.
"""

from vfsd.client.results import StaleFileError
from vfsd.client.vfs import Vfs, connect

__all__ = ["StaleFileError", "Vfs", "connect"]
__version__ = "0.1.0"
