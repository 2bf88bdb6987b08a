"""What several commands are given, and what of it cannot be meant."""

import os

from vfsd.config import MountConfig, SeedSpec, runtime_dir, store_url
from vfsd.daemon.process import log_file_of
from vfsd.errors import UsageError
from vfsd.host import mountpoint as mountpoints
from vfsd.store.url import checked, local_path


def chosen_store(given: str | None) -> str:
    """Return the URL of the store to use. Raises UsageError if it is empty or no URL."""
    return checked(store_url(given))


def skill_given(text: str) -> SeedSpec:
    """Return what ``DIR[:DEST]`` means: DEST follows the last colon. Raises UsageError."""
    source, colon, dest = text.rpartition(":")
    return _given(source if colon else dest, dest if colon else "", text)


def seed_given(text: str) -> SeedSpec:
    """Return what ``SRC:DEST`` means: DEST follows the last colon. Raises UsageError."""
    source, colon, dest = text.rpartition(":")
    if not (colon and dest):
        raise UsageError(f"--seed {text}: expected SRC:DEST, as in ./notes.md:/notes/seed.md")
    return _given(source, dest, text)


def _given(source: str, dest: str, text: str) -> SeedSpec:
    if not source:
        raise UsageError(f"{text!r} names nothing on this disk: write what is to be seeded before the colon")
    if os.path.lexists(text) and not os.path.lexists(source):
        raise UsageError(f"{text}: DEST follows the last colon, and there is no {source}: write {text}:DEST")
    return SeedSpec(os.path.abspath(source), dest or None)  # noqa: PTH100 (a Path would follow links)


def check_outside(config: MountConfig, *, detached: bool) -> None:
    """Refuse what a daemon would reach through its own mount, and so wait for itself. Raises UsageError."""
    needed = {"registrations": os.fspath(runtime_dir()), "store": local_path(config.store)}
    needed["log"] = log_file_of(config) if detached else config.log_file
    for what, path in needed.items():
        if path and mountpoints.lies_within(path, config.mountpoint):
            raise UsageError(f"{path}: the {what} of a mount cannot lie at or below its mountpoint {config.mountpoint}")
