"""A recursive rmdir removes the directory that was there when it was called, and nothing that took its name since."""

import pytest

from tests.seeds.seeded_scope import SeededScope, seeded_scope
from tests.seeds.test_locks import DIRECTORY, FILE, BlockingStore
from vfsd.tree.change import ROOT
from vfsd.tree.plan_names import RENAME_EXCHANGE, EntryKey, NewInode


async def _make(scope: SeededScope, *paths: bytes) -> None:
    for path in paths:
        parent, _, name = path.rpartition(b"/")
        mode = FILE if name.startswith(b"f") else DIRECTORY
        directory = scope.inode(parent).ino if parent else ROOT
        await scope.volume.create(EntryKey(directory, name), NewInode(mode, 0, 0))


@pytest.mark.parametrize("other", [b"file", b"e"])
async def test_what_takes_the_name_meanwhile_stays(other: bytes) -> None:
    store = BlockingStore()
    async with seeded_scope(store=store) as scope:
        await _make(scope, b"d", b"d/f1", b"e", b"e/f2", b"file")
        await store.meet(
            [
                lambda: scope.volume.rename(EntryKey(ROOT, b"d"), EntryKey(ROOT, other), RENAME_EXCHANGE),
                lambda: scope.files.rmdir(b"d", recursive=True),
            ]
        )
        assert scope.inode(other + b"/f1") is not None, "the directory has another name, and is not removed by it"
        assert scope.inode(b"d") is not None, "what has its name now is not removed"
        await scope.check()


async def test_a_directory_that_stays_goes_with_what_is_in_it() -> None:
    async with seeded_scope() as scope:
        await _make(scope, b"d", b"d/f1", b"d/e", b"d/e/f2", b"kept")
        await scope.files.rmdir(b"d", recursive=True)
        assert list(scope.tree.directory(ROOT).entries) == [b"kept"]
        await scope.check()
