"""Lookups that forgive: what a name at the root means to whoever takes a seeded skill's directory for the root.

Models read ``references/x.md`` where the file is ``/skills/NAME/references/x.md``. Pure: nothing here enters the tree.
A *phantom* is a directory that is only answered; its number is never used but for the directory it may become.
"""

import errno
import stat
from collections.abc import Iterable, Iterator

from vfsd.errors import FsError
from vfsd.seeds.overlay import SeedOverlay
from vfsd.seeds.plan import PathNames, SeededSkill
from vfsd.tree.change import ROOT, Attributes, Change, DropEntry
from vfsd.tree.inode import Directory, Entry, Inode
from vfsd.tree.plan_names import EntryKey, NewInode
from vfsd.tree.plan_subtree import FileContent, NewEntry, plan_create_path
from vfsd.tree.tree import Tree

_DIRECTORY = stat.S_IFDIR | 0o755
_PERMISSIONS = 0o777
_PROBED = frozenset({b"node_modules", b"__pycache__"})
"""Directories that a skill may bring along, and tools look for at every root; as they do for names with a dot first."""


class VirtualDirectory:
    """A directory that is answered at *names* below the root; ``lookups`` is the kernel's lookup count."""

    __slots__ = ("ino", "lookups", "names")

    def __init__(self, ino: int, names: PathNames) -> None:
        self.ino = ino
        self.names = names
        self.lookups = 0


class RootReferences:
    """The phantoms of *tree*, as the skills among *seeds* have it."""

    def __init__(self, tree: Tree, seeds: SeedOverlay) -> None:
        self._tree = tree
        self._seeds = seeds
        self._by_ino: dict[int, VirtualDirectory] = {}
        self._by_names: dict[PathNames, VirtualDirectory] = {}

    # --- what is answered

    def find(self, names: PathNames) -> Inode | VirtualDirectory | None:
        """Return what is answered at *names*: a phantom if they are a directory in each skill that has them at all.

        A file is answered if just one skill has it, and never at the root. A real name at the root hides all this.
        """
        if names[0] in self._tree.directory(ROOT).entries:
            return None
        hits = list(self._hits(names))
        if hits and all(hit.directory is not None for hit in hits):
            return self._phantom(names)
        return hits[0] if len(hits) == 1 and len(names) > 1 else None

    def _hits(self, names: PathNames) -> Iterator[Inode]:
        """Yield what each seeded skill has at *names*."""
        for directory, _ in self._seeds.skills():
            skill = self._seeds.skill(directory)
            found = self._tree.child(directory, names[0])
            if found is None or skill is None or not _is_offered(names[0], found, skill):
                continue
            for name in names[1:]:
                found = None if found is None or found.directory is None else self._tree.child(found.ino, name)
            if found is not None:
                yield found

    def _phantom(self, names: PathNames) -> VirtualDirectory:
        phantom = self._by_names.get(names)
        if phantom is None:
            phantom = self._by_names[names] = VirtualDirectory(self._tree.allocate(), names)
            self._by_ino[phantom.ino] = phantom
        return phantom

    def attributes(self, phantom: VirtualDirectory) -> Attributes:
        """Return the attributes of *phantom*: who may make it real is who may make names at the root. Errors: ESTALE.

        One link means that nobody counts (as in btrfs), else ``find`` would take it to have no subdirectories.
        """
        if self.find(phantom.names) is not phantom:
            raise FsError(errno.ESTALE)
        root = self._tree.inode(ROOT).attributes
        newest = max(hit.attributes.mtime_ns for hit in self._hits(phantom.names))
        mode = stat.S_IFDIR | (root.mode & _PERMISSIONS)
        return Attributes(mode, 1, root.uid, root.gid, 0, 0, newest, newest, newest)

    def directory(self, phantom: VirtualDirectory) -> Directory:
        """Return what is answered in *phantom*, as entries. Errors: ESTALE."""
        self.attributes(phantom)
        directory = Directory(phantom.ino)
        directory.parent = self.parent(phantom)
        names = {name for hit in self._hits(phantom.names) if hit.directory for name in hit.directory.entries}
        for name in sorted(names):
            found = self.find((*phantom.names, name))
            if found is not None:
                directory.put(name, Entry(found.ino, directory.next_cookie))
        return directory

    def parent(self, phantom: VirtualDirectory) -> int:
        """Return the directory above *phantom*."""
        return self._phantom(phantom.names[:-1]).ino if len(phantom.names) > 1 else ROOT

    # --- the kernel's references

    def phantom(self, ino: int) -> VirtualDirectory | None:
        """Return the phantom with number *ino*, unless there is none or it has become real."""
        phantom = self._by_ino.get(ino)
        return None if phantom is None or self._adopted(phantom) else phantom

    def forget(self, phantom: VirtualDirectory, count: int) -> None:
        """Take back *count* of the kernel's references; the phantom goes with the last."""
        phantom.lookups -= count
        if phantom.lookups <= 0:
            self._drop(phantom)

    def adopt(self) -> None:
        """Let what has become real be that: the kernel's references to it count for the inode from now on."""
        for phantom in tuple(self._by_ino.values()):
            self._adopted(phantom)

    def _adopted(self, phantom: VirtualDirectory) -> bool:
        inode = self._tree.inodes.get(phantom.ino)
        if inode is None:
            return False
        inode.lookups += phantom.lookups
        self._drop(phantom)
        return True

    def _drop(self, phantom: VirtualDirectory) -> None:
        del self._by_ino[phantom.ino]
        self._by_names.pop(phantom.names, None)

    # --- becoming real

    def touched(self, phantom: VirtualDirectory) -> tuple[int, ...]:
        """Return the directory in which :meth:`plan` begins. Errors: as there."""
        return (self._start(phantom)[0],)

    def plan(self, phantom: VirtualDirectory, last: tuple[NewEntry, ...], owner: NewInode, now_ns: int) -> Change:
        """Plan that *phantom* and those above it become directories of *owner*, and *last* is made in it.

        Errors: ESTALE (something else has come to stand there), and see :func:`plan_branch`.
        """
        parent, missing = self._start(phantom)
        new = owner._replace(mode=_DIRECTORY)
        above = [NewEntry(names[-1], self._phantom(names).ino, new) for names in missing]
        return plan_create_path(self._tree, parent, [*above, *last], FileContent(), now_ns)

    def _start(self, phantom: VirtualDirectory) -> tuple[int, list[PathNames]]:
        """Return the directory that is real, and the phantoms' names from there on."""
        ino = ROOT
        for depth, name in enumerate(phantom.names):
            child = self._tree.child(ino, name)
            if child is None:
                return ino, [phantom.names[: end + 1] for end in range(depth, len(phantom.names))]
            ino = child.ino
        if ino != phantom.ino:
            raise FsError(errno.ESTALE)
        return ino, []


def _is_offered(name: bytes, found: Inode, skill: SeededSkill) -> bool:
    """Whether a skill's *name* is answered at the root: a directory seeded with it that no tool looks for there."""
    return (name, found.ino) in skill.parts and not name.startswith(b".") and name not in _PROBED


def is_answered(loose: RootReferences, key: EntryKey) -> bool:
    """Whether *place* is a name that is only answered, so that it can neither be removed nor moved."""
    return key.parent == ROOT and loose.find((key.name,)) is not None


def appearing(skills: Iterable[SeededSkill]) -> tuple[DropEntry, ...]:
    """Return the names at the root that may be answered once *skills* are seeded: the kernel must ask again."""
    return tuple(DropEntry(ROOT, name) for name in sorted({name for skill in skills for name, _ in skill.parts}))
