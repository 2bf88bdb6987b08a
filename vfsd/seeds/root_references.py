"""What a name at the root means to a model that takes the directory of a skill for the root.

Models read ``references/x.md`` where the file is ``/skills/NAME/references/x.md``. If the seeded skills give that name
one meaning, it is answered. Nothing here changes the tree. A *virtual directory* is answered and not in the tree.
Nothing else uses its inode number, except the directory that it may become. What somebody removes is not answered any
more until the next seeding; the skill keeps it, and nothing is stored.
"""

import errno
import stat
from collections.abc import Collection, Iterator
from typing import NamedTuple

from vfsd.errors import FsError
from vfsd.seeds.overlay import SeedOverlay
from vfsd.seeds.plan import PathNames
from vfsd.tree.change import ROOT, Attributes, Change
from vfsd.tree.inode import Directory, Entry, Inode
from vfsd.tree.plan_names import EntryKey, NewInode
from vfsd.tree.plan_subtree import FileContent, NewEntry, plan_create_path
from vfsd.tree.tree import Tree

_DIRECTORY = stat.S_IFDIR | 0o755
_PERMISSIONS = 0o777


class VirtualDirectory:
    """A directory that is answered at *names* below the root. ``lookups`` is the kernel's lookup count."""

    __slots__ = ("ino", "lookups", "names")

    def __init__(self, ino: int, names: PathNames) -> None:
        self.ino = ino
        self.names = names
        self.lookups = 0


class Meaning(NamedTuple):
    """What skills have at a path: *hits*, and whether these are directories only."""

    hits: tuple[Inode, ...]
    is_directory: bool

    @property
    def newest_ns(self) -> int:
        """The newest time of the hits (ns, 0 without any). It changes more often than the hits do."""
        return max([hit.attributes.mtime_ns for hit in self.hits], default=0)


_NOTHING = Meaning((), False)
_MOST_MEANINGS = 1000
"""How many answers are kept at most, because a program may ask for any number of names."""


class RootReferences:
    """The virtual directories of *tree*, as the skills of *overlay* have them. *offered* are those of the root."""

    def __init__(self, tree: Tree, overlay: SeedOverlay, offered: Collection[bytes]) -> None:
        self._tree = tree
        self._overlay = overlay
        self._offered = frozenset(offered)
        self._removed: set[PathNames] = set()
        self._seedings = 0
        self._by_ino: dict[int, VirtualDirectory] = {}
        self._by_names: dict[PathNames, VirtualDirectory] = {}
        self._meanings: dict[PathNames, Meaning] = {}
        self._version = 0

    # --- what is answered

    def find(self, names: PathNames) -> Inode | VirtualDirectory | None:
        """Return what is answered at *names*.

        It is a virtual directory if *names* are a directory in every skill that has them. A file is answered only if
        exactly one skill has it, and never directly at the root. A real name at the root hides all this, and so does
        the removal of a name.
        """
        if names[0] in self._tree.directory(ROOT).entries or self._is_removed(names):
            return None
        meaning = self.meaning(names)
        if meaning.is_directory:
            return self._virtual(names)
        return meaning.hits[0] if len(meaning.hits) == 1 and len(names) > 1 else None

    def meaning(self, names: PathNames) -> Meaning:
        """Return what the seeded skills have at *names*. A model asks again and again, so the answer is kept.

        It is found out again after a change of a directory that was looked at.
        """
        if names[0] not in self._offered or not self._overlay.skills_with_part(names[0]):
            return _NOTHING
        if self._version != self._overlay.version or len(self._meanings) >= _MOST_MEANINGS:
            self._meanings.clear()
            self._version = self._overlay.version
        meaning = self._meanings.get(names)
        if meaning is None:
            hits = tuple(self._hits(names))
            is_directory = bool(hits) and all(hit.directory is not None for hit in hits)
            meaning = self._meanings[names] = Meaning(hits, is_directory)
        return meaning

    def _hits(self, names: PathNames) -> Iterator[Inode]:
        """Yield what each seeded skill has at *names*."""
        for directory in self._overlay.skills_with_part(names[0]):
            skill = self._overlay.skill(directory)
            path = [self._tree.inode(directory), *self._way(directory, names)]
            self._overlay.consult(found.ino for found in path if found.directory is not None)
            complete = len(path) == len(names) + 1
            if complete and skill is not None and (names[0], path[1].ino) in skill.parts:
                yield path[-1]

    def _way(self, directory: int, names: PathNames) -> Iterator[Inode]:
        """Yield what *names* lead to from *directory* on, as far as there is anything."""
        for name in names:
            found = self._tree.child(directory, name)
            if found is None:
                return
            yield found
            if found.directory is None:
                return
            directory = found.ino

    def _virtual(self, names: PathNames) -> VirtualDirectory:
        virtual = self._by_names.get(names)
        if virtual is None:
            virtual = self._by_names[names] = VirtualDirectory(self._tree.allocate(), names)
            self._by_ino[virtual.ino] = virtual
        return virtual

    def node(self, ino: int) -> Inode | VirtualDirectory:
        """Return what has number *ino*. Errors: ESTALE."""
        return self.virtual(ino) or self._tree.inode(ino)

    def attributes(self, virtual: VirtualDirectory) -> Attributes:
        """Return the attributes of *virtual*: who may create names at the root may make it real. Errors: ESTALE.

        A link count of one means that links are not counted, as in btrfs. With two, ``find`` assumes no subdirectories.
        Somebody may still be in a directory that was removed: it has no links.
        """
        is_removed = self._is_removed(virtual.names)
        if not is_removed and self.find(virtual.names) is not virtual:
            raise FsError(errno.ESTALE)
        root = self._tree.inode(ROOT).attributes
        newest = self.meaning(virtual.names).newest_ns
        mode = stat.S_IFDIR | (root.mode & _PERMISSIONS)
        return Attributes(mode, 0 if is_removed else 1, root.uid, root.gid, 0, 0, newest, newest, newest)

    def directory(self, virtual: VirtualDirectory) -> Directory:
        """Return what is answered in *virtual*, as entries. Errors: ESTALE."""
        self.attributes(virtual)
        directory = Directory(virtual.ino)
        directory.parent = self.parent(virtual)
        names = {name for hit in self.meaning(virtual.names).hits if hit.directory for name in hit.directory.entries}
        for name in sorted(names):
            found = self.find((*virtual.names, name))
            if found is not None:
                directory.put(name, Entry(found.ino, directory.next_cookie))
        return directory

    def parent(self, virtual: VirtualDirectory) -> int:
        """Return the directory above *virtual*."""
        return self._virtual(virtual.names[:-1]).ino if len(virtual.names) > 1 else ROOT

    def is_answered(self, key: EntryKey) -> bool:
        """Whether *key* is a name that is only answered: it cannot be moved."""
        names = self.names(key)
        return names is not None and self.find(names) is not None

    def names(self, key: EntryKey) -> PathNames | None:
        """Return the names below the root of what may be answered as *key*; None for what is below a real directory."""
        if key.parent == ROOT:
            return (key.name,)
        virtual = self.virtual(key.parent)
        return None if virtual is None else (*virtual.names, key.name)

    # --- what was removed

    def remove(self, names: PathNames, *, directory: bool) -> None:
        """Answer *names* no more, until the next seeding.

        Errors: ENOENT; EISDIR or ENOTDIR if it is no *directory* or is one; ENOTEMPTY.
        """
        found = self.find(names)
        if found is None:
            raise FsError(errno.ENOENT)
        if directory and not isinstance(found, VirtualDirectory):
            raise FsError(errno.ENOTDIR)
        if isinstance(found, VirtualDirectory):
            if not directory:
                raise FsError(errno.EISDIR)
            if self.directory(found).entries:
                raise FsError(errno.ENOTEMPTY)
        self._removed.add(names)

    def hides(self, name: bytes) -> bool:
        """Whether skills have *name* at the root, but it was removed and nothing real has it."""
        return (
            self._is_removed((name,))
            and self.meaning((name,)).is_directory
            and name not in self._tree.directory(ROOT).entries
        )

    def _is_removed(self, names: PathNames) -> bool:
        """Whether *names*, or a directory above, was removed since the last seeding."""
        if self._seedings != self._overlay.seedings:
            self._seedings = self._overlay.seedings
            self._removed.clear()
        return bool(self._removed) and any(names[:depth] in self._removed for depth in range(1, len(names) + 1))

    # --- the kernel's references

    def virtual(self, ino: int) -> VirtualDirectory | None:
        """Return the virtual directory with number *ino*, unless there is none or it has become real."""
        virtual = self._by_ino.get(ino)
        return None if virtual is None or self._adopted(virtual) else virtual

    def forget(self, virtual: VirtualDirectory, count: int) -> None:
        """Take back *count* of the kernel's references. The virtual directory goes with the last."""
        virtual.lookups -= count
        if virtual.lookups <= 0:
            self._drop(virtual)

    def adopt(self) -> None:
        """Hand the kernel's references to virtual directories that have become real over to their inodes."""
        for virtual in tuple(self._by_ino.values()):
            self._adopted(virtual)

    def _adopted(self, virtual: VirtualDirectory) -> bool:
        inode = self._tree.inodes.get(virtual.ino)
        if inode is None:
            return False
        inode.lookups += virtual.lookups
        self._drop(virtual)
        return True

    def _drop(self, virtual: VirtualDirectory) -> None:
        del self._by_ino[virtual.ino]
        self._by_names.pop(virtual.names, None)

    # --- becoming real

    def allocate(self) -> int:
        """Return a new inode number."""
        return self._tree.allocate()

    def touched(self, virtual: VirtualDirectory) -> tuple[int, ...]:
        """Return the directory in which :meth:`plan` begins. Errors: as there."""
        return (self._first_missing(virtual)[0],)

    def plan(self, virtual: VirtualDirectory, last: tuple[NewEntry, ...], owner: NewInode, now_ns: int) -> Change:
        """Plan that *virtual* and those above it become directories of *owner*, and that *last* is made in it.

        Errors: ESTALE (something else stands there by now), and see :func:`plan_create_path`.
        """
        parent, missing = self._first_missing(virtual)
        new = owner._replace(mode=_DIRECTORY)
        above = [NewEntry(names[-1], self._virtual(names).ino, new) for names in missing]
        return plan_create_path(self._tree, parent, [*above, *last], FileContent(), now_ns)

    def _first_missing(self, virtual: VirtualDirectory) -> tuple[int, list[PathNames]]:
        """Return the last directory on the way that is real, and the names of the virtual ones from there on.

        Errors: ESTALE (something else stands there by now), ENOENT (it was removed).
        """
        if self._is_removed(virtual.names):
            raise FsError(errno.ENOENT)
        ino = ROOT
        for depth, name in enumerate(virtual.names):
            child = self._tree.child(ino, name)
            if child is None:
                return ino, [virtual.names[: end + 1] for end in range(depth, len(virtual.names))]
            ino = child.ino
        if ino != virtual.ino:
            raise FsError(errno.ESTALE)
        return ino, []
