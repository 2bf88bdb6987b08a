"""vfsd: ordinary files for agent runs, held in memory, mounted through FUSE, written through to a store."""

__version__ = "0.1.0"
