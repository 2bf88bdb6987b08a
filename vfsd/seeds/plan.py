"""Planning what a seeding does to the tree in memory: new files under their names, and seeds that go again.

Pure, and it touches neither tree nor index. It never looks at the store: what is stored under a name where a seed
comes to stand stays as it is, out of sight.
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
from vfsd.tree.draft import Draft, check_name, stamp
from vfsd.tree.inode import Entry, Inode
from vfsd.tree.plan_names import EntryKey, NewInode, first_attributes
from vfsd.tree.plan_subtree import FileContent
from vfsd.tree.tree import Tree

PathNames = tuple[bytes, ...]
"""A path: the names that lead there, from the root or from where a seed begins."""

DIRECTORY_MODE = stat.S_IFDIR | 0o755
_FORBIDDEN = {b"", b".", b".."}


class SeedNode(NamedTuple):
    """What is to be seeded under one name: a file, a directory or a symbolic link, as *mode* says.

    *whole* is a file's content, *target* where a link leads.
    """

    mode: int
    whole: FileContent = FileContent()
    target: bytes = b""


class SeedTerms(NamedTuple):
    """On what terms seeds are made: whose they are, and whether a stored file is kept in sight instead of a seed."""

    uid: int
    gid: int
    keep: bool


class SeededSkill(NamedTuple):
    """A seeded skill: what its front matter says, and the places of the files it was seeded with.

    *parts* are the directories in it that have such files at any depth, by their names and inode numbers: what is put
    there under the same name later is not the skill's.
    """

    name: str
    description: str
    members: frozenset[EntryKey]
    parts: frozenset[tuple[bytes, int]]

    def without_part(self, moved: int) -> "SeededSkill":
        """Return what the skill is without directory *moved*."""
        return self._replace(parts=frozenset(part for part in self.parts if part[1] != moved))


@dataclass(slots=True)
class SeedPlan(Effects):
    """A planned seeding: what it does to memory, and to the records of what is seeded. The store gets nothing.

    *homes* are the homes of the new inodes. *shadowed* are the stored entries that are hidden from now on; at the keys
    *restored* one is shown again. At the keys *kept* a stored file stayed visible; at *given_up* nobody asks for a seed
    any more. *skills* are the seeded skills by directory. *removed* is how many seeds went.
    """

    homes: dict[int, EntryKey] = field(default_factory=dict)
    shadowed: dict[EntryKey, Entry] = field(default_factory=dict)
    restored: tuple[EntryKey, ...] = ()
    kept: dict[EntryKey, int] = field(default_factory=dict)
    given_up: frozenset[EntryKey] = frozenset()
    skills: dict[int, SeededSkill] = field(default_factory=dict)
    removed: int = 0


class SeedPlanner:
    """One seeding of *tree* in the making, at *now_ns*."""

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
        self.keys: set[EntryKey] = set()
        """Of all that was put but directories."""
        self._gone: set[EntryKey] = set()
        self._skills: dict[int, SeededSkill] = {}
        self._removed = 0

    # --- making

    def put(self, names: PathNames, node: SeedNode) -> None:
        """Seed *node* at *names*, from the root, with the directories that are missing.

        Errors: EISDIR, ENOTDIR (a directory and another file cannot take each other's place), ENAMETOOLONG.
        """
        if stat.S_ISDIR(node.mode):
            self.directory(names, node.mode)
            return
        if names in self._directories:
            raise FsError(errno.EISDIR, f"{_text(names)} is a directory, where a file is to be seeded")
        key = EntryKey(self.directory(names[:-1]), _checked(names[-1]))
        self.keys.add(key)
        present = self._child(key)
        if present is not None and present.directory is not None:
            raise FsError(errno.EISDIR, f"{_text(names)} is a directory, where a file is to be seeded")
        if present is None or self._gives_way(present, key, node):
            self._make(key, node, present)

    def directory(self, names: PathNames, mode: int = DIRECTORY_MODE) -> int:
        """Return the directory at *names*, a new one with *mode* if there is none. Errors: ENOTDIR, ENAMETOOLONG."""
        known = self._directories.get(names)
        if known is None:
            known = self._directories[names] = self._find_directory(names, mode)
        return known

    def _find_directory(self, names: PathNames, mode: int) -> int:
        key = EntryKey(self.directory(names[:-1]), _checked(names[-1]))
        present = self._child(key)
        if key in self.keys or (present is not None and present.directory is None):
            raise FsError(errno.ENOTDIR, f"{_text(names)} is no directory, where one is to be seeded")
        return self._add(key, SeedNode(mode)) if present is None else present.ino

    def _child(self, key: EntryKey) -> Inode | None:
        return self._tree.child(*key) if key.parent in self._tree.inodes else None

    def _gives_way(self, present: Inode, key: EntryKey, node: SeedNode) -> bool:
        """Whether *node* is to replace what is *present*; a seed goes then, and a stored file is hidden."""
        if present.ino in self._index.homes:
            if _is(present, node):
                return False
            self._draft.unlink(present.ino)
        elif self._terms.keep:
            self._kept[key] = present.ino
            return False
        else:
            self._shadowed[key] = self._tree.directory(key.parent).entries[key.name]
        return True

    def _make(self, key: EntryKey, node: SeedNode, replaced: Inode | None) -> None:
        """Make *node* at *place*, modified later than what was seen there."""
        ino = self._add(key, node)
        if replaced is not None:
            modified_ns = stamp(self._now_ns, replaced.attributes.mtime_ns, replaced.shown)
            attributes = self._draft.attributes(ino)
            self._draft.add(ino, attributes._replace(mtime_ns=modified_ns, ctime_ns=modified_ns))

    def _add(self, key: EntryKey, node: SeedNode) -> int:
        ino = self._tree.allocate()
        new = NewInode(node.mode, self._terms.uid, self._terms.gid, target=node.target)
        attributes = first_attributes(self._draft.attributes(key.parent), new, self._now_ns)
        self._modify(key.parent, +1 if attributes.is_directory else 0)
        self._draft.add(ino, attributes._replace(size=node.whole.size) if attributes.is_regular else attributes)
        self._draft.put_entry(key.parent, key.name, ino)
        self._draft.put_chunks(ino, node.whole.chunks)
        self._homes[ino] = key
        return ino

    def _modify(self, directory: int, links: int) -> None:
        if directory in self._tree.inodes:
            self._draft.modify(directory)
        if links:
            self._draft.count_link(directory, links)

    def name_skill(self, top: PathNames, name: str, description: str) -> None:
        """Let all that was put be the skill of the directory at *top*."""
        self._skills[self.directory(top)] = SeededSkill(name, description, frozenset(self.keys), self._parts(top))

    def _parts(self, top: PathNames) -> frozenset[tuple[bytes, int]]:
        filled, depth = {key.parent for key in self.keys}, len(top) + 1
        deep = (
            names for names, ino in self._directories.items() if ino in filled and names[: depth - 1] == top != names
        )
        return frozenset((names[depth - 1], self._directories[names[:depth]]) for names in deep)

    # --- removing

    def remove_all(self, keys: Iterable[EntryKey], directories: Iterable[int] = ()) -> None:
        """Let the seeds at *places* go, and seeded *directories* with them if nothing is left in those."""
        doomed = list(keys)
        for key in doomed:
            self._remove(key)
        self._prune((*(key.parent for key in doomed), *directories))

    def _remove(self, key: EntryKey) -> None:
        """Let the seed at *place* go, if one stands there; what was hidden under it is seen again."""
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
            self._gone.add(key)
        else:
            self._draft.put_entry(*key, shadow.ino)
            self._restored.append(key)

    def _prune(self, directories: Iterable[int]) -> None:
        """Let seeded *directories* in which nothing is left go too, and those above that then are empty."""
        filled = {home.parent for home in self._homes.values()}
        for start in directories:
            ino = start
            while ino in self._index.homes and ino not in filled and self._is_bare(ino):
                home = self._index.homes[ino]
                if home not in self._gone:
                    self._gone.add(home)
                    self._draft.modify(home.parent)
                    self._draft.count_link(home.parent, -1)
                    self._draft.drop_entry(*home)
                    self._draft.unlink(ino)
                ino = home.parent

    def _is_bare(self, ino: int) -> bool:
        return all(EntryKey(ino, name) in self._gone for name in self._tree.directory(ino).entries)

    def plan(self) -> SeedPlan:
        """Return the finished plan."""
        return SeedPlan(
            memory=self._draft.change(grows=bool(self._homes)),
            untold=_answered_at_root(self._skills.values()),
            homes=self._homes,
            shadowed=self._shadowed,
            restored=tuple(self._restored),
            kept=self._kept,
            given_up=frozenset(self._given_up - self.keys),
            skills=self._skills,
            removed=self._removed,
        )


def _answered_at_root(skills: Iterable[SeededSkill]) -> tuple[DropEntry, ...]:
    """Return the names at the root whose lookup may be answered once *skills* are seeded: the kernel must ask again."""
    return tuple(DropEntry(ROOT, name) for name in sorted({name for skill in skills for name, _ in skill.parts}))


def _is(inode: Inode, node: SeedNode) -> bool:
    """Whether *inode* is what *node* would make."""
    attributes: Attributes = inode.attributes
    same = attributes.mode == node.mode and attributes.target == node.target
    content = (attributes.size, inode.chunks) if attributes.is_regular else (0, {})
    return same and content == (node.whole.size, node.whole.chunks)


def _checked(name: bytes) -> bytes:
    if name in _FORBIDDEN or b"/" in name or b"\0" in name:
        raise FsError(errno.EINVAL, f"{_text((name,))!r} is no name for a file")
    check_name(name)
    return name


def _text(names: PathNames) -> str:
    return b"/".join(names).decode(errors="backslashreplace")
