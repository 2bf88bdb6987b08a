"""What must be true of every tree, and two ways to rebuild one: from its changes, or from the records of a store."""

import random
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tests.tree.planned_tree import Pictured, picture
from vfsd.tree.change import (
    CHUNK_SIZE,
    ROOT,
    Attributes,
    DropChunks,
    DropEntry,
    DropInode,
    Op,
    PutChunks,
    PutEntry,
    PutInode,
)
from vfsd.tree.inode import FIRST_COOKIE, Directory, Inode
from vfsd.tree.tree import Tree


def check_sound(tree: Tree) -> None:
    """Assert all that holds for every tree, whatever has happened to it."""
    names: Counter[int] = Counter()
    lookups = 0
    check_indexes(tree)
    for ino, inode in tree.inodes.items():
        assert inode.ino == ino < tree.next_ino
        lookups += sum(map(len, inode.chunks.values()))
        _check_chunks(inode)
        if inode.directory is not None:
            _check_directory(tree, inode, inode.directory)
            names.update(entry.ino for entry in inode.directory.entries.values())
    assert tree.content_bytes == lookups
    assert names[ROOT] == 0
    for ino, inode in tree.inodes.items():
        expected = min(inode.attributes.nlink, 1) if inode.directory is not None else inode.attributes.nlink
        assert names[ino] == expected or ino == ROOT


def check_indexes(tree: Tree) -> None:
    """Assert that each file knows the directories of its names, and shares the tuple of the directory if it has one."""
    parents: dict[int, Counter[int]] = {ino: Counter() for ino, inode in tree.inodes.items() if inode.directory is None}
    for ino, inode in tree.inodes.items():
        for entry in () if inode.directory is None else inode.directory.entries.values():
            if entry.ino in parents:
                parents[entry.ino][ino] += 1
    for ino, found in parents.items():
        recorded = tree.inodes[ino].parents
        if found.total() == 1:
            assert recorded is tree.directory(*found).as_parents
        else:
            assert Counter(recorded) == found


def directories_with(tree: Tree, name: bytes) -> set[int]:
    """Return the directories of *tree* that hold an entry *name*."""
    return {ino for ino, inode in tree.inodes.items() if inode.directory and name in inode.directory.entries}


def _check_chunks(inode: Inode) -> None:
    for number, chunk in inode.chunks.items():
        assert any(chunk), "a chunk of zeros is kept"
        assert len(chunk) <= CHUNK_SIZE
        assert number * CHUNK_SIZE + len(chunk) <= inode.attributes.size


def _check_directory(tree: Tree, inode: Inode, directory: Directory) -> None:
    children = [tree.inodes[entry.ino] for entry in directory.entries.values()]
    subdirectories = [child for child in children if child.directory is not None]
    assert all(child.directory is not None and child.directory.parent == inode.ino for child in subdirectories)
    assert inode.attributes.nlink == (0 if inode.is_orphan else 2 + len(subdirectories))
    assert not (inode.is_orphan and children)
    cookies = [entry.cookie for entry in directory.entries.values()]
    assert cookies == sorted(set(cookies))
    assert all(FIRST_COOKIE <= cookie < directory.next_cookie for cookie in cookies)


class StoredPart(NamedTuple):
    """The part of an inode that is stored."""

    attributes: Attributes
    chunks: dict[int, bytes]
    entries: tuple[object, ...]
    parent: int | None


def stored_part(tree: Tree) -> dict[int, StoredPart]:
    """Return what another mount of the scope would show: everything that has a name, without lookup counts."""
    return {ino: _stored_part(pictured) for ino, pictured in picture(tree).items() if pictured.attributes.nlink}


def _stored_part(pictured: Pictured) -> StoredPart:
    return StoredPart(pictured.attributes, pictured.chunks, pictured.entries, pictured.parent)


def replayed(ops: Iterable[Op]) -> Tree:
    """Return a new tree that has taken *ops*, without what happened to an inode after it was dropped."""
    tree, dropped = Tree(), set()
    for op in ops:
        if isinstance(op, PutEntry | DropEntry) or op.ino not in dropped:
            tree.replay([op])
        if isinstance(op, DropInode):
            dropped.add(op.ino)
    return tree


class Records:
    """The final records, as a store would hold them: one an inode, one an entry, one a chunk."""

    def __init__(self) -> None:
        self.inodes: dict[int, Attributes] = {}
        self.entries: dict[tuple[int, bytes], PutEntry] = {}
        self.chunks: dict[tuple[int, int], bytes] = {}

    def keep(self, ops: Iterable[Op]) -> None:
        """Take *ops* one by one, as a store does."""
        for op in ops:
            match op:
                case PutInode():
                    self.inodes[op.ino] = op.attributes
                case PutEntry():
                    self.entries[op.parent, op.name] = op
                case DropEntry():
                    self.entries.pop((op.parent, op.name), None)
                case PutChunks():
                    self.chunks.update({(op.ino, number): bytes(chunk) for number, chunk in op.chunks.items()})
                case DropChunks():
                    self._drop_chunks(op.ino, op.numbers)
                case DropInode():
                    self.inodes.pop(op.ino, None)
                    self._drop_chunks(op.ino, None)

    def _drop_chunks(self, ino: int, numbers: tuple[int, ...] | None) -> None:
        for key in [(of, number) for of, number in self.chunks if of == ino]:
            if numbers is None or key[1] in numbers:
                del self.chunks[key]

    def ops(self, chance: random.Random) -> list[Op]:
        """Return all records as hydration takes them: in any order, entries last and by their cookies."""
        inodes: list[Op] = [PutInode(ino, attributes) for ino, attributes in self.inodes.items()]
        chunks: list[Op] = [PutChunks(ino, {number: chunk}) for (ino, number), chunk in self.chunks.items()]
        entries = list(self.entries.values())
        for records in (inodes, chunks, entries):
            chance.shuffle(records)
        return [*inodes, *chunks, *sorted(entries, key=lambda entry: entry.cookie)]
