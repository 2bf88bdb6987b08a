"""A stored file that a seed hides can be changed by those who have it open, and is seen again without the seed."""

import pytest

from tests.seeds.seeded_scope import SeededScope
from tests.support.scopes import scope_in_memory
from vfsd.seeds.frontmatter import SKILL
from vfsd.store.memory import MemoryStore
from vfsd.tree.change import ROOT
from vfsd.tree.plan_names import EntryKey, NewInode

FILE, DIRECTORY = 0o100644, 0o40755


@pytest.mark.parametrize("truncated", [False, True])
async def test_a_change_of_a_hidden_file_moves_the_stored_times_above_it(truncated: bool) -> None:
    store = MemoryStore()
    async with scope_in_memory(store) as scope:
        mounted = SeededScope(scope)
        directory = (await scope.volume.create(EntryKey(ROOT, b"skill"), NewInode(DIRECTORY, 0, 0))).ino
        hidden = (await scope.volume.create(EntryKey(directory, SKILL), NewInode(FILE, 0, 0))).ino
        await scope.volume.write(hidden, 0, b"old")
        seen = {ino: scope.tree.inode(ino).attributes.mtime_ns for ino in (ROOT, directory)}
        for ino in seen:
            scope.tree.inode(ino).shown = True
        await mounted.seeding.file(b"skill/SKILL.md", b"a seed", 0o644)
        if truncated:
            await scope.volume.truncate_on_open(hidden)
        await scope.volume.write(hidden, 0, b"new")
    async with scope_in_memory(store) as scope:
        assert scope.volume.read(hidden, 0, 9) == b"new"
        for ino, mtime_ns in seen.items():
            assert scope.tree.inode(ino).attributes.mtime_ns // 1_000_000 != mtime_ns // 1_000_000
