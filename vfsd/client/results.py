"""What a client gets back from a daemon: plain values, and the one exception that Python has no class for."""

import errno
from typing import NamedTuple


class StaleFileError(OSError):
    """The file was not last modified when the caller expected it (ESTALE). Times in ns; *actual* None: no file."""

    def __init__(self, message: str, path: str | None, expected_mtime_ns: int, actual_mtime_ns: int | None) -> None:
        super().__init__(errno.ESTALE, message, path)
        self.expected_mtime_ns = expected_mtime_ns
        self.actual_mtime_ns = actual_mtime_ns


class Written(NamedTuple):
    """A file after it was written: when (ns), its size in bytes, and whether it is new."""

    mtime_ns: int
    size: int
    created: bool


class Stat(NamedTuple):
    """What is at a path. *type* is ``file``, ``directory``, ``symlink`` or ``other``; times in ns, size in bytes."""

    type: str
    size: int
    mode: int
    nlink: int
    uid: int
    gid: int
    ino: int
    mtime_ns: int
    ctime_ns: int
    atime_ns: int


class Skill(NamedTuple):
    """A seeded skill: its directory, what its front matter says, and its files, relative to the directory."""

    dir: str
    name: str
    description: str
    files: list[str]


class Seed(NamedTuple):
    """A seeded file. *state*: ``seeded``, ``shadows`` (a stored file lies under it) or ``kept`` (a stored file won)."""

    path: str
    state: str


class Seeds(NamedTuple):
    """All that is seeded."""

    skills: list[Skill]
    seeds: list[Seed]
