"""The scope under torture and its mounts. When the scope is claimed again, it moves to another mountpoint."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.support.mounted import Mounted, MountFactory
from tests.support.trees import Found, differences, look_at

EXPECTED = (
    r"lost the store .* during a commit",
    r"; trying again",
    r"the store .* answers again",
    r"a change that was answered with an error turned out to be stored",
    r"has been claimed by .*; this mount stays readable",
    r"the truncation of inode \d+ will not be stored",
    r"a truncation could not be stored, the old content stays",
    r"cleaned up .*: a dead daemon had left scope",
)
"""The warnings that a daemon may log under torture. A warning about lost commits is not among them."""

_UNCLEAN_END = 13


class ScopeMounts:
    """A new scope at *store*, mounted by *factory* with *options*."""

    def __init__(self, factory: MountFactory, store: str, *options: str) -> None:
        self._store = store
        self.mounted = factory(store, *options, start=False)
        scope = self.mounted.scope
        self._elsewhere = factory(store, *options, scope=scope, start=False)
        self._reader = factory(store, *options, "--read-only", scope=scope, start=False)
        for mounted in (self.mounted, self._elsewhere, self._reader):
            mounted.expected += EXPECTED
        self.mounted.start()

    @property
    def root(self) -> Path:
        """Where the scope is mounted."""
        return self.mounted.path

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the daemon during the block, at a moment at which it does not lock a file of SQLite.

        Nobody could take the scope over from a daemon that was frozen in the middle of a commit (docs/guarantees.md).
        """
        mounted = self.mounted
        while True:
            with mounted.frozen():
                if not _is_locked(self._store):
                    yield
                    return

    def take_over(self) -> None:
        """Mount at the other path, which fences the current mount. The caller must :meth:`unmount_fenced` it."""
        self.mounted, self._elsewhere = self._elsewhere, self.mounted
        self.mounted.start("--take-over")

    def unmount_fenced(self, fenced: Mounted) -> None:
        """Unmount a mount that has lost the scope."""
        status = fenced.stop()
        assert status in {0, _UNCLEAN_END}, f"exit status {status}: {fenced.log.read_text()}"

    def compare(self) -> None:
        """Compare the mount with a new read-only mount of the same scope. Raises AssertionError."""
        self._reader.start()
        shown, kept = look_at(os.fsencode(self.root)), look_at(os.fsencode(self._reader.path))
        assert self._reader.stop() == 0, self._reader.log.read_text()
        lines = _differences(kept, shown)
        assert not lines, "the mount differs from its store:\n    " + "\n    ".join(lines)


def _is_locked(store: str) -> bool:
    """Whether a process is writing to the file of *store*, if that is SQLite's."""
    scheme, _, path = store.partition(":")
    if scheme != "sqlite":
        return False
    try:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return True
    return False


def _differences(kept: Found, shown: Found) -> list[str]:
    stamps = [
        f"{path!r}: stored as {kept.stamps[path]}, shown as {stamp}"
        for path, stamp in shown.stamps.items()
        if kept.stamps.get(path, stamp) != stamp
    ]
    return differences(kept.facts, shown.facts) + stamps
