"""Planning a seeding: which seeds the tree in memory gets, and which it loses.

Planning changes neither the tree nor the index. It never looks at the store: a stored file stays stored when a seed
takes its name. It is only hidden.
"""

import errno
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from vfsd.errors import FsError
from vfsd.scope.hooks import Effects
from vfsd.seeds.index import SeedIndex
from vfsd.tree.change import ROOT, Attributes, DropEntry
from vfsd.tree.draft import Draft, check_name
from vfsd.tree.inode import Entry, Inode
from vfsd.tree.plan_names import EntryKey, NewInode, first_attributes
from vfsd.tree.plan_subtree import FileContent
from vfsd.tree.tree import Tree

PathNames = tuple[bytes, ...]
"""A path as names, from the root of the scope or from the top of a seed."""

DIRECTORY_MODE = stat.S_IFDIR | 0o755
_FORBIDDEN = {b"", b".", b".."}


class SeedNode(NamedTuple):
    """What to seed under one name: a file, a directory or a symbolic link, as *mode* says.

    *content* is the content of a file, *target* the target of a symbolic link.
    """

    mode: int
    content: FileContent = FileContent()
    target: bytes = b""


class SeedTerms(NamedTuple):
    """How seeds are made: their owner, and whether a stored file is kept visible instead of being hidden by a seed."""

    uid: int
    gid: int
    keep: bool


class SeededSkill(NamedTuple):
    """A seeded skill: what its front matter says, and its *members*, the keys of the files it was seeded with.

    *parts* are the directories directly in it that contain members at any depth. Each has a name and an inode number:
    a directory that gets the same name later does not belong to the skill.
    """

    name: str
    description: str
    members: frozenset[EntryKey]
    parts: frozenset[tuple[bytes, int]]

    def without_part(self, moved: int) -> "SeededSkill":
        """Return the skill without directory *moved*."""
        return self._replace(parts=frozenset(part for part in self.parts if part[1] != moved))


@dataclass(slots=True)
class SeedPlan(Effects):
    """A planned seeding: what it does to memory, and to the records of what is seeded. The store gets nothing.

    *homes* are the homes of the new inodes. *shadowed* are the stored entries that the plan hides, and at the keys
    *restored* it makes a hidden entry visible again. At the keys *kept* a stored file stays visible instead of a seed.
    At the keys *given_up* a seed is not wanted any longer. *skills* are the seeded skills by directory. *removed* is
    how many seeds the plan removes.
    """

    homes: dict[int, EntryKey] = field(default_factory=dict)
    shadowed: dict[EntryKey, Entry] = field(default_factory=dict)
    restored: tuple[EntryKey, ...] = ()
    kept: dict[EntryKey, int] = field(default_factory=dict)
    given_up: frozenset[EntryKey] = frozenset()
    skills: dict[int, SeededSkill] = field(default_factory=dict)
    removed: int = 0


class SeedPlanner:
    """Plans one seeding of *tree* at *now_ns*."""

    def __init__(self, tree: Tree, index: SeedIndex, terms: SeedTerms, now_ns: int) -> None:
        self._tree = tree
        self._index = index
        self._terms = terms
        self._now_ns = now_ns
        self._draft = Draft(tree, now_ns)
        self._directories: dict[PathNames, int] = {(): ROOT}
        self._homes: dict[int, EntryKey] = {}
        self._shadowed: dict[EntryKey, Entry] = {}
        self._restored: list[EntryKey] = []
        self._kept: dict[EntryKey, int] = {}
        self._given_up: set[EntryKey] = set()
        self.seeded_keys: set[EntryKey] = set()
        """The keys of all that was put, except directories."""
        self._removed_keys: set[EntryKey] = set()
        self._skills: dict[int, SeededSkill] = {}
        self._removed = 0

    # --- adding

    def put(self, names: PathNames, node: SeedNode) -> None:
        """Seed *node* at *names*, a path from the root. Missing directories are seeded too.

        Errors: EISDIR, ENOTDIR (a directory cannot replace another kind of file, nor be replaced by it), ENAMETOOLONG.
        """
        if stat.S_ISDIR(node.mode):
            self.directory(names, node.mode)
            return
        if names in self._directories:
            raise FsError(errno.EISDIR, f"{_text(names)} is a directory, where a file is to be seeded")
        key = EntryKey(self.directory(names[:-1]), _checked(names[-1]))
        self.seeded_keys.add(key)
        present = self._child(key)
        if present is not None and present.directory is not None:
            raise FsError(errno.EISDIR, f"{_text(names)} is a directory, where a file is to be seeded")
        if present is None or self._replaces(node, present, key):
            self._add(key, node)

    def directory(self, names: PathNames, mode: int = DIRECTORY_MODE) -> int:
        """Return the directory at *names*. If there is none, seed one with *mode*. Errors: ENOTDIR, ENAMETOOLONG."""
        known = self._directories.get(names)
        if known is None:
            known = self._directories[names] = self._find_directory(names, mode)
        return known

    def _find_directory(self, names: PathNames, mode: int) -> int:
        key = EntryKey(self.directory(names[:-1]), _checked(names[-1]))
        present = self._child(key)
        if key in self.seeded_keys or (present is not None and present.directory is None):
            raise FsError(errno.ENOTDIR, f"{_text(names)} is no directory, where one is to be seeded")
        return self._add(key, SeedNode(mode)) if present is None else present.ino

    def _child(self, key: EntryKey) -> Inode | None:
        return self._tree.child(*key) if key.parent in self._tree.inodes else None

    def _replaces(self, node: SeedNode, present: Inode, key: EntryKey) -> bool:
        """Return whether *node* replaces the inode *present* at *key*.

        If so, this plans to remove *present* if it is a seed, and to hide it if it is stored.
        """
        if present.ino in self._index.homes:
            if _is_same(present, node):
                return False
            self._draft.unlink(present.ino)
        elif self._terms.keep:
            self._kept[key] = present.ino
            return False
        else:
            self._shadowed[key] = self._tree.directory(key.parent).entries[key.name]
        return True

    def _add(self, key: EntryKey, node: SeedNode) -> int:
        ino = self._tree.allocate()
        new = NewInode(node.mode, self._terms.uid, self._terms.gid, target=node.target)
        attributes = first_attributes(self._draft.attributes(key.parent), new, self._now_ns)
        self._modify(key.parent, +1 if attributes.is_directory else 0)
        self._draft.add(ino, attributes._replace(size=node.content.size) if attributes.is_regular else attributes)
        self._draft.put_entry(key.parent, key.name, ino)
        self._draft.put_chunks(ino, node.content.chunks)
        self._homes[ino] = key
        return ino

    def _modify(self, directory: int, links: int) -> None:
        if directory in self._tree.inodes:
            self._draft.modify(directory)
        if links:
            self._draft.count_link(directory, links)

    def name_skill(self, top: PathNames, name: str, description: str) -> None:
        """Make everything that was put the skill of the directory at *top*."""
        self._skills[self.directory(top)] = SeededSkill(
            name, description, frozenset(self.seeded_keys), self._parts(top)
        )

    def _parts(self, top: PathNames) -> frozenset[tuple[bytes, int]]:
        """Return name and number of each directory directly in *top* that contains seeded files at any depth."""
        filled, depth = {key.parent for key in self.seeded_keys}, len(top)
        below = (names for names, ino in self._directories.items() if ino in filled and names[:depth] == top != names)
        return frozenset((names[depth], self._directories[names[: depth + 1]]) for names in below)

    # --- removing

    def remove_all(self, keys: Iterable[EntryKey], directories: Iterable[int] = ()) -> None:
        """Remove the seeds at *keys*, and the seeded directories that this empties.

        Of other seeded *directories* those are removed that are empty too.
        """
        removed = list(keys)
        for key in removed:
            self._remove(key)
        self._remove_empty((*(key.parent for key in removed), *directories))

    def _remove(self, key: EntryKey) -> None:
        """Remove the seed at *key*, if there is one. The entry that it hid becomes visible again."""
        self._given_up.add(key)
        present = self._child(key)
        if present is None or present.ino not in self._index.homes or present.directory is not None:
            return
        self._removed += 1
        self._draft.modify(key.parent)
        self._draft.unlink(present.ino)
        shadow = self._index.shadowed.get(key)
        if shadow is None:
            self._draft.drop_entry(*key)
            self._removed_keys.add(key)
        else:
            self._draft.put_entry(*key, shadow.ino)
            self._restored.append(key)

    def _remove_empty(self, directories: Iterable[int]) -> None:
        """Remove seeded *directories* that are empty, and then seeded directories above them that are empty too."""
        filled = {home.parent for home in self._homes.values()}
        for start in directories:
            ino = start
            while ino in self._index.homes and ino not in filled and self._is_emptied(ino):
                home = self._index.homes[ino]
                if home not in self._removed_keys:
                    self._removed_keys.add(home)
                    self._draft.modify(home.parent)
                    self._draft.count_link(home.parent, -1)
                    self._draft.drop_entry(*home)
                    self._draft.unlink(ino)
                ino = home.parent

    def _is_emptied(self, ino: int) -> bool:
        """Whether this plan removes every entry that directory *ino* has in the tree."""
        return all(EntryKey(ino, name) in self._removed_keys for name in self._tree.directory(ino).entries)

    def plan(self) -> SeedPlan:
        """Return the finished plan."""
        return SeedPlan(
            memory=self._draft.change(grows=bool(self._homes)),
            untold=_answered_at_root(self._skills.values()),
            homes=self._homes,
            shadowed=self._shadowed,
            restored=tuple(self._restored),
            kept=self._kept,
            given_up=frozenset(self._given_up - self.seeded_keys),
            skills=self._skills,
            removed=self._removed,
        )


def _answered_at_root(skills: Iterable[SeededSkill]) -> tuple[DropEntry, ...]:
    """Return the names at the root whose lookup may be answered once *skills* are seeded: the kernel must ask again."""
    return tuple(DropEntry(ROOT, name) for name in sorted({name for skill in skills for name, _ in skill.parts}))


def _is_same(inode: Inode, node: SeedNode) -> bool:
    """Whether seeding *node* would make an inode equal to *inode*."""
    attributes: Attributes = inode.attributes
    content = FileContent(attributes.size, inode.chunks) if attributes.is_regular else FileContent()
    return (attributes.mode, attributes.target, content) == (node.mode, node.target, node.content)


def _checked(name: bytes) -> bytes:
    if name in _FORBIDDEN or b"/" in name or b"\0" in name:
        raise FsError(errno.EINVAL, f"{_text((name,))!r} is no name for a file")
    check_name(name)
    return name


def _text(names: PathNames) -> str:
    return b"/".join(names).decode(errors="backslashreplace")
