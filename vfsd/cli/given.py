"""What several commands are given, and what of it cannot be meant."""

import os
from urllib.parse import urlsplit

from vfsd import mountpoint as places
from vfsd.config import Given, MountConfig, runtime_dir, store_url
from vfsd.errors import UsageError
from vfsd.launch import log_file_of
from vfsd.store.label import checked


def chosen_store(given: str | None) -> str:
    """Return the URL of the store to use. Raises UsageError if it is empty or no URL."""
    return checked(store_url(given))


def skill_given(text: str) -> Given:
    """Return what ``DIR[:DEST]`` means: DEST follows the last colon. Raises UsageError."""
    source, colon, dest = text.rpartition(":")
    return _given(source if colon else dest, dest if colon else "", text)


def seed_given(text: str) -> Given:
    """Return what ``SRC:DEST`` means: DEST follows the last colon. Raises UsageError."""
    source, colon, dest = text.rpartition(":")
    if not (colon and dest):
        raise UsageError(f"--seed {text}: expected SRC:DEST, as in ./notes.md:/notes/seed.md")
    return _given(source, dest, text)


def _given(source: str, dest: str, text: str) -> Given:
    if not source:
        raise UsageError(f"{text!r} names nothing on this disk: write what is to be seeded before the colon")
    if os.path.lexists(text) and not os.path.lexists(source):
        raise UsageError(f"{text}: DEST follows the last colon, and there is no {source}: write {text}:DEST")
    return Given(os.path.abspath(source), dest or None)  # noqa: PTH100 (a Path would follow links)


def check_outside(config: MountConfig, *, detached: bool) -> None:
    """Refuse what a daemon would reach through its own mount, and so wait for itself. Raises UsageError."""
    needed = {"registrations": os.fspath(runtime_dir()), "store": _file_of(config.store)}
    needed["log"] = log_file_of(config) if detached else config.log_file
    for what, path in needed.items():
        if path and places.lies_within(path, config.mountpoint):
            raise UsageError(f"{path}: the {what} of a mount cannot lie at or below its mountpoint {config.mountpoint}")


def _file_of(store: str) -> str | None:
    """Return the file or the socket that *store* is, if it is one."""
    scheme, _, path = store.partition(":")
    if scheme == "sqlite":
        return path
    return urlsplit(store).path if scheme == "unix" else None
