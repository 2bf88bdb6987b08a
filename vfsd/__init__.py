"""vfsd: ordinary files for agent runs, held in memory, mounted through FUSE, written through to a store.

A program that uses the files of a mount needs nothing from here. :func:`connect` gives a client for operations that a
path cannot express. All types that such a program meets are exported here. Importing this package loads no event loop,
no store, no FUSE library and no command line.
"""

from vfsd.client.results import Seed, Seeds, Skill, StaleFileError, Stat, Written
from vfsd.client.vfs import Content, FilePath, Vfs, connect
from vfsd.errors import VfsdError

__all__ = [
    "Content",
    "FilePath",
    "Seed",
    "Seeds",
    "Skill",
    "StaleFileError",
    "Stat",
    "Vfs",
    "VfsdError",
    "Written",
    "connect",
]
__version__ = "0.1.0"
