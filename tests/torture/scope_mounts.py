"""The scope under torture and the places it is mounted at: it changes places when it is claimed elsewhere."""

import os
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
"""What a daemon may have to say under torture. That it had lost something it may not."""

_UNCLEAN = 13


class Stage:
    """A new scope at *store*, mounted by *factory* with *options*."""

    def __init__(self, factory: MountFactory, store: str, *options: str) -> None:
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

    def take_over(self) -> None:
        """Mount elsewhere, fencing the present mount: that is the caller's to :meth:`leave`."""
        self.mounted, self._elsewhere = self._elsewhere, self.mounted
        self.mounted.start("--take-over")

    def leave(self, before: Mounted) -> None:
        """Unmount a mount that has lost the scope."""
        status = before.stop()
        assert status in {0, _UNCLEAN}, f"exit status {status}: {before.log.read_text()}"

    def compare(self) -> None:
        """Compare the mount, as the kernel shows it, with what a newcomer reads from the store. AssertionError."""
        self._reader.start()
        shown, kept = look_at(os.fsencode(self.root)), look_at(os.fsencode(self._reader.path))
        assert self._reader.stop() == 0, self._reader.log.read_text()
        lines = _differences(kept, shown)
        assert not lines, "the mount differs from its store, by which\n    " + "\n    ".join(lines)


def _differences(kept: Found, shown: Found) -> list[str]:
    stamps = [
        f"{path!r}: stored as {kept.stamps[path]}, shown as {stamp}"
        for path, stamp in shown.stamps.items()
        if kept.stamps.get(path, stamp) != stamp
    ]
    return differences(kept.facts, shown.facts) + stamps
