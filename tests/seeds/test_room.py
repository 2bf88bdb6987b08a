"""Room: seeds take memory of the daemon. They take room in the scope only when they become stored."""

import errno

import pytest

from tests.seeds.seeded_scope import SeededScope, seeded_scope
from vfsd.errors import FsError
from vfsd.store.base import ClaimTerms
from vfsd.tree.change import CHUNK_SIZE, ROOT, Limits
from vfsd.tree.plan_attributes import NewAttributes
from vfsd.tree.plan_names import EntryKey

LARGE = b"x" * CHUNK_SIZE * 4
MODE = NewAttributes(mode=0o600)


def limited(**limits: int) -> ClaimTerms:
    return ClaimTerms(limits=Limits(**limits))


async def refused(scope: SeededScope, path: bytes, number: int) -> None:
    """Assert that making the seed at *path* a stored file is refused, and changes nothing."""
    with pytest.raises(FsError) as caught:
        await scope.volume.setattr(scope.inode(path).ino, MODE)
    assert caught.value.errno == number
    await scope.check()
    assert scope.inode(path).ino in scope.overlay.index.homes


async def test_bytes_count_once_they_are_stored() -> None:
    async with seeded_scope(terms=limited(max_bytes=len(LARGE))) as scope:
        assert await scope.seeding.file(b"one", LARGE, 0o644)
        assert await scope.seeding.file(b"two", LARGE, 0o644)
        assert (scope.volume.used, scope.volume.room().free) == (0, 0)
        await scope.volume.setattr(scope.inode(b"one").ino, MODE)
        assert scope.volume.used == len(LARGE)
        await refused(scope, b"two", errno.ENOSPC)
        await scope.volume.unlink(EntryKey(ROOT, b"two"))
        assert scope.volume.used == len(LARGE)


async def test_files_count_once_they_are_stored_with_the_directories_above() -> None:
    async with seeded_scope(terms=limited(max_files=3)) as scope:
        for name in (b"file", b"d/e/file"):
            assert await scope.seeding.file(name, b"x", 0o644)
        assert scope.volume.files == 0
        await refused(scope, b"d/e/file", errno.ENOSPC)
        await scope.volume.setattr(scope.inode(b"file").ino, MODE)
        assert scope.volume.files == 1


async def test_a_seed_that_is_too_large_for_the_scope_cannot_be_stored() -> None:
    async with seeded_scope(terms=limited(max_file_bytes=10)) as scope:
        assert await scope.seeding.file(b"file", LARGE, 0o644)
        await refused(scope, b"file", errno.EFBIG)


async def test_what_is_emptied_before_it_is_stored_takes_no_room() -> None:
    async with seeded_scope(terms=limited(max_bytes=len(LARGE))) as scope:
        assert await scope.seeding.file(b"file", LARGE, 0o644)
        await scope.volume.truncate_on_open(scope.inode(b"file").ino)
        assert scope.volume.used == 0
        await scope.volume.write(scope.inode(b"file").ino, 0, LARGE)
        assert scope.volume.used == len(LARGE)
        await scope.check()


async def test_memory_is_taken_at_once() -> None:
    async with seeded_scope(memory=100_000) as scope:
        assert await scope.seeding.file(b"one", LARGE, 0o644)
        with pytest.raises(FsError) as caught:
            await scope.seeding.file(b"two", LARGE, 0o644)
        assert caught.value.errno == errno.ENOSPC
        assert [seed.names for seed in scope.seeding.seeds()] == [(b"one",)]
        await scope.check()


async def test_a_seed_that_cannot_become_stored_cannot_be_emptied() -> None:
    async with seeded_scope(terms=limited(max_files=3)) as scope:
        assert await scope.seeding.file(b"d/e/file", b"seeded", 0o644)
        with pytest.raises(FsError) as caught:
            await scope.volume.truncate_on_open(scope.inode(b"d/e/file").ino)
        assert caught.value.errno == errno.ENOSPC
        assert scope.volume.read(scope.inode(b"d/e/file").ino, 0, 100) == b"seeded"
        await scope.check()
        assert await scope.seeding.file(b"file", b"seeded", 0o644)
        await scope.volume.truncate_on_open(scope.inode(b"file").ino)
        await scope.volume.drain()
        assert scope.volume.files == 1
        await scope.check()
