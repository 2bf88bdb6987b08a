"""Names in one directory that has many."""

import os
from pathlib import Path
from unittest import mock

from bench.growth import stored
from bench.growth.base import SCOPE, Place, Row, Run, each, renaming
from vfsd import connect


def full(place: Place, size: int) -> Path:
    """Return a directory with *size* empty files. Nothing of it is cached by the kernel."""
    stored.store(place.store, SCOPE, stored.directories(size, size))
    return place.vfsd.mountpoint / "d0"


def _listing(place: Place, size: int) -> Run:
    directory = full(place, size)
    return lambda: len(os.listdir(directory))


def _creating(place: Place, size: int) -> Run:
    directory = full(place, size)
    return each(lambda number: os.mknod(directory / f"new{number}", 0o644), size)


def _looking_up(place: Place, size: int) -> Run:
    directory = full(place, size)
    return each(lambda number: os.stat(directory / f"f{number}"), size)


def _unlinking(place: Place, size: int) -> Run:
    directory = full(place, size)
    return each(lambda number: os.unlink(directory / f"f{number}"), size)


def _renaming_full(place: Place, size: int) -> Run:
    return renaming(full(place, size))


def _listing_all(place: Place, size: int) -> Run:
    full(place, size)
    with mock.patch.dict(os.environ, place.vfsd.environment):  # it says where the control socket is
        client = connect(place.vfsd.mountpoint)
    return lambda: len(client.list_all_paths())


DIRECTORIES = (
    Row("list a directory of SIZE files", "µs for each entry", 2000, _listing),
    Row("create in a directory of SIZE files", "µs for each file", 2000, _creating),
    Row("look up in a directory of SIZE files", "µs for each name", 2000, _looking_up),
    Row("remove from a directory of SIZE files", "µs for each file", 2000, _unlinking),
    Row("rename a directory of SIZE files", "µs for each rename", 2000, _renaming_full),
    Row("name all of SIZE files by the control socket", "µs for each file", 2000, _listing_all),
)
