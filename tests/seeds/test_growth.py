"""What a change or a lookup costs does not grow with the number of skills that it does not concern.

The cost is the number of calls of functions, written in Python or in C: the same on every machine.
"""

import stat
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.seeds.seeded_scope import OFFERED, SeededScope, seeded_scope
from vfsd.seeds.root_references import RootReferences
from vfsd.tree.change import ROOT
from vfsd.tree.plan_names import EntryKey, NewInode

FEW, MANY = 20, 400
DIRECTORY, FILE = NewInode(stat.S_IFDIR | 0o755, 0, 0), NewInode(stat.S_IFREG | 0o644, 0, 0)


async def _stored_skill(scope: SeededScope, parent: int, name: bytes) -> int:
    directory = await scope.volume.create(EntryKey(parent, name), DIRECTORY)
    await scope.volume.create(EntryKey(directory.ino, b"SKILL.md"), FILE)
    return directory.ino


async def _fill_with_stored_skills(scope: SeededScope, skills: int) -> None:
    parent = (await scope.volume.create(EntryKey(ROOT, b"skills"), DIRECTORY)).ino
    for number in range(skills):
        await _stored_skill(scope, parent, b"%d" % number)


async def _fill_with_seeded_skills(scope: SeededScope, skills: int) -> None:
    for number in range(skills):
        head = b"---\nname: skill %d\ndescription: one of many\n---\n" % number
        files = {b"SKILL.md": (head, 0o644), b"references/own %d.md" % number: (b"text", 0o644)}
        await scope.seeding.skill(b"/skills/%d" % number, files)


FILLS = {"stored": _fill_with_stored_skills, "seeded": _fill_with_seeded_skills}


async def _make_a_skill(scope: SeededScope) -> None:
    await _stored_skill(scope, scope.inode(b"/beside").ino, b"made")


async def _make_a_file(scope: SeededScope) -> None:
    await scope.volume.create(EntryKey(scope.inode(b"/beside").ino, b"made"), FILE)


async def _make_a_directory(scope: SeededScope) -> None:
    await scope.volume.create(EntryKey(scope.inode(b"/beside").ino, b"made"), DIRECTORY)


async def _rename_a_directory(scope: SeededScope) -> None:
    beside = scope.inode(b"/beside").ino
    await scope.volume.rename(EntryKey(beside, b"directory"), EntryKey(beside, b"renamed"), 0)


async def _move_a_directory(scope: SeededScope) -> None:
    await scope.volume.rename(EntryKey(scope.inode(b"/beside").ino, b"directory"), EntryKey(ROOT, b"moved"), 0)


async def _move_a_skill(scope: SeededScope) -> None:
    await scope.volume.rename(EntryKey(scope.inode(b"/beside").ino, b"skill"), EntryKey(ROOT, b"moved"), 0)


async def _remove_a_directory(scope: SeededScope) -> None:
    await scope.volume.rmdir(EntryKey(scope.inode(b"/beside").ino, b"directory"))


async def _write(scope: SeededScope) -> None:
    await scope.volume.write(scope.inode(b"/beside/skill/SKILL.md").ino, 0, b"text")


async def _miss_at_the_root(scope: SeededScope) -> None:
    assert scope.references.find((b"none",)) is None


async def _ask_again(scope: SeededScope) -> None:
    scope.references.find((b"references", b"own 7.md"))
    scope.references.find((b"references",))


OPERATIONS: dict[str, Callable[[SeededScope], Awaitable[None]]] = {
    "make a skill": _make_a_skill,
    "make a file": _make_a_file,
    "make a directory": _make_a_directory,
    "rename a directory": _rename_a_directory,
    "move a directory": _move_a_directory,
    "move a skill": _move_a_skill,
    "remove a directory": _remove_a_directory,
    "write": _write,
    "miss at the root": _miss_at_the_root,
    "ask for the same reference again": _ask_again,
}


async def _calls(fill: Callable[[SeededScope, int], Awaitable[None]], skills: int, name: str) -> int:
    """Return how many functions the operation *name* calls beside that many *skills*."""
    async with seeded_scope() as scope:
        await fill(scope, skills)
        beside = (await scope.volume.create(EntryKey(ROOT, b"beside"), DIRECTORY)).ino
        await scope.volume.create(EntryKey(beside, b"directory"), DIRECTORY)
        await _stored_skill(scope, beside, b"skill")
        await _ask_again(scope)
        calls = 0

        def count(_frame: Any, event: str, _argument: Any) -> None:
            nonlocal calls
            calls += event in {"call", "c_call"}

        sys.setprofile(count)
        try:
            await OPERATIONS[name](scope)
        finally:
            sys.setprofile(None)
        await scope.check()
        return calls


@pytest.mark.parametrize("fill", FILLS.values(), ids=FILLS)
@pytest.mark.parametrize("name", OPERATIONS)
async def test_what_an_operation_costs_does_not_grow_with_the_skills_beside_it(
    fill: Callable[[SeededScope, int], Awaitable[None]], name: str
) -> None:
    few, many = await _calls(fill, FEW, name), await _calls(fill, MANY, name)
    assert many <= few + FEW, f"{few} calls beside {FEW} skills, {many} beside {MANY}"


async def test_a_kept_answer_is_given_up_with_the_next_change_of_what_was_looked_at() -> None:
    async with seeded_scope() as scope:
        await _fill_with_seeded_skills(scope, 3)
        references, fresh = scope.references, RootReferences(scope.tree, scope.overlay, OFFERED)
        here = EntryKey(scope.inode(b"/skills/1/references").ino, b"new.md")
        for names in ((b"references", b"new.md"), (b"references", b"own 1.md"), (b"references",)):
            references.find(names)
        made = await scope.volume.create(here, FILE)
        assert references.find((b"references", b"new.md")) is made
        await scope.volume.create(EntryKey(scope.inode(b"/skills/2/references").ino, b"new.md"), FILE)
        assert references.find((b"references", b"new.md")) is None
        await scope.volume.unlink(here)
        assert references.find((b"references", b"new.md")) is not None
        await scope.volume.rename(EntryKey(ROOT, b"skills"), EntryKey(ROOT, b"others"), 0)
        assert references.find((b"references", b"own 1.md")) is None
        assert fresh.find((b"references",)) is None
        await scope.check()
