"""Skills, seeds, and what agent frameworks expect of both beyond POSIX. Nothing here knows FUSE or a store.

A seed is a derived file that a mount shows among its own, never stored by itself: only by what somebody does to it
through the mount, as ``translation`` says.
"""
