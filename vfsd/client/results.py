"""The results of a client's methods, and the one exception that Python has no class for."""

import errno
from typing import NamedTuple


class StaleFileError(OSError):
    """The file was not last modified when the caller expected (ESTALE): somebody else changed it.

    Times are in nanoseconds. *actual_mtime_ns* is None if there is no file.
    """

    def __init__(self, message: str, path: str | None, expected_mtime_ns: int, actual_mtime_ns: int | None) -> None:
        super().__init__(errno.ESTALE, message, path)
        self.expected_mtime_ns = expected_mtime_ns
        self.actual_mtime_ns = actual_mtime_ns


class Written(NamedTuple):
    """A file after a write: its modification time in ns, its size in bytes, and whether the write created it."""

    mtime_ns: int
    size: int
    created: bool


class Stat(NamedTuple):
    """The attributes of a path. *type* is ``file``, ``directory``, ``symlink`` or ``other``.

    Times are in nanoseconds, *size* is in bytes, *mode* includes the type as ``st_mode`` does.
    """

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
    """A seeded skill: its directory, name and description from its front matter, files relative to the directory."""

    dir: str
    name: str
    description: str
    files: list[str]


class Seed(NamedTuple):
    """A seeded file.

    *state* is ``seeded``, ``shadows`` (it hides a stored file) or ``kept`` (a stored file is shown instead of it).
    """

    path: str
    state: str


class Seeds(NamedTuple):
    """All seeds of a mount: the skills, and every seeded file."""

    skills: list[Skill]
    seeds: list[Seed]
