"""A directory of 100,000 entries. The test writes them directly to the store: one mkdir each would take minutes."""

import os
import time
from pathlib import Path

from tests.support.files import names, refused
from tests.support.mounted import MountFactory
from tests.support.servers import RedisServer
from vfsd.store.base import ClaimTerms, StoreOptions
from vfsd.store.owner import this_process
from vfsd.store.url import open_store
from vfsd.tree.change import ROOT, Attributes, Change, PutEntry, PutInode

COUNT = 100_000
_DIRECTORY, _FILE = 2, 3
_ENTRIES_PER_COMMIT = 10_000


def _inode(ino: int, mode: int, nlink: int) -> PutInode:
    now_ns = time.time_ns()
    return PutInode(ino, Attributes(mode, nlink, 0, 0, 0, 0, now_ns, now_ns, now_ns))


def _entries(start: int) -> tuple[PutEntry, ...]:
    return tuple(PutEntry(_DIRECTORY, b"entry-%d" % n, _FILE, 3 + n) for n in range(start, start + _ENTRIES_PER_COMMIT))


async def _fill(store_url: str, scope: str) -> None:
    """Make a scope with a directory ``large``, which holds :data:`COUNT` names of one file."""
    store = open_store(store_url, StoreOptions())
    claim = await store.claim(scope, this_process("/nowhere"), ClaimTerms())
    await claim.commit(
        Change(
            (
                _inode(ROOT, 0o040755, 3),
                _inode(_DIRECTORY, 0o040755, 2),
                _inode(_FILE, 0o100644, COUNT),
                PutEntry(ROOT, b"large", _DIRECTORY, 3),
            ),
            grows=True,
        ),
    )
    for start in range(0, COUNT, _ENTRIES_PER_COMMIT):
        await claim.commit(Change(_entries(start), grows=True))
    await claim.release()
    await store.aclose()


async def test_a_directory_of_100_000_entries(mount: MountFactory, redis_server: RedisServer, tmp_path: Path) -> None:
    await _fill(redis_server.url, tmp_path.name)
    mounted = mount(redis_server.url, scope=tmp_path.name)
    large = mounted.path / "large"
    expected = {b"entry-%d" % number for number in range(COUNT)}
    assert names(large) == expected
    assert (large / f"entry-{COUNT - 1}").stat().st_nlink == COUNT
    with refused(2):
        (large / f"entry-{COUNT}").stat()

    listed = []
    with os.scandir(large) as entries:
        for number, entry in enumerate(entries):
            listed.append(entry.name)
            if number % 200 == 0:
                (large / entry.name).unlink()
                (large / f"added-{number}").touch()
    assert len(listed) == len(set(listed))
    assert set(map(os.fsencode, listed)) >= expected

    left = names(large)
    assert len(left) == COUNT
    assert len(left & expected) == COUNT - 500
    mounted.remount()
    assert names(large) == left
