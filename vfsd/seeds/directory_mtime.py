"""Directory times for those who cache: which directories' modification times a change moves beyond what POSIX says.

Frameworks read a skill once, and again only when the modification time of its directory has moved; POSIX moves it for
names that come or go directly in it, and for nothing below. Pure: this looks at the tree and at planned changes, adds
to them, and never applies or stores one. Nor does it move a time that nobody has seen: nobody could tell.
"""

from collections.abc import Iterable, Iterator

from vfsd.config import DirectoryMtime
from vfsd.tree.change import ROOT, Change, DropChunks, DropEntry, DropInode, PutChunks, PutEntry, PutInode
from vfsd.tree.draft import Draft
from vfsd.tree.inode import Entry
from vfsd.tree.tree import SKILL, Tree


class DirectoryTimes:
    """The rule for *tree* that *kind* names."""

    def __init__(self, tree: Tree, kind: DirectoryMtime) -> None:
        self._tree = tree
        self._kind = kind
        self._chains: dict[int, tuple[int, ...]] = {}
        """What :meth:`_chain` returned, for as long as the tree has this shape: writes ask again and again."""
        self._watched: set[int] = set()
        """The skills and the directories above them, of this shape."""
        self._look_again()

    def above(self, change: Change) -> tuple[int, ...]:
        """Return the directories in whose times *change*, which is not applied yet, must show.

        That is each directory above content or names that change, from the nearest one that holds a SKILL.md before or
        after the change, up to the root; or all of them, or none, as the rule has it.
        """
        if self._kind is DirectoryMtime.POSIX:
            return ()
        if self._shape != self._tree.shape:
            self._look_again()
        if not (self._watched or self._kind is DirectoryMtime.ALL or _brings_a_skill(change)):
            return ()  # which is what most scopes are asked for most of the time
        found: set[int] = set()
        for op in change.ops:
            if isinstance(op, (PutEntry, DropEntry)):
                found.update(self._above_name(op, change))
            elif isinstance(op, DropInode):
                self._chains.pop(op.ino, None)
            else:
                for parent in self._changed_in(op):
                    found.update(self._chain(parent))
        return tuple(found)

    def around(self, parents: Iterable[int]) -> tuple[int, ...]:
        """Return the directories in whose times a name that comes or goes in *parents* must show, but for a skill's."""
        if self._kind is DirectoryMtime.POSIX:
            return ()
        return tuple({ino for parent in parents for ino in self._chain(parent)})

    def _look_again(self) -> None:
        self._shape = self._tree.shape
        self._chains.clear()
        self._watched = {ino for skill in self._tree.skills for ino in self._and_above(skill)}

    def moved(self, change: Change, above: tuple[int, ...]) -> tuple[int, ...]:
        """Return the directories of which a *change* with these *above* it moves the times, and of which that matters.

        Those are also the ones that move as POSIX says: who makes a name there hears of that with the answer to it,
        others should as soon as it is so.
        """
        if self._kind is DirectoryMtime.ALL:
            return tuple(op.ino for op in change.ops if isinstance(op, PutInode) and op.attributes.is_directory)
        if not (above or self._watched):
            return ()
        inos = (op.ino for op in change.ops if isinstance(op, PutInode))
        return tuple(ino for ino in inos if ino in self._watched or ino in above)

    def seen(self, inos: Iterable[int]) -> tuple[int, ...]:
        """Return those of *inos* that are there and whose present modification time somebody has seen."""
        present = ((ino, self._tree.inodes.get(ino)) for ino in inos)
        return tuple(ino for ino, inode in present if inode is not None and inode.shown and not inode.is_orphan)

    def moving(self, change: Change, inos: tuple[int, ...], now_ns: int) -> Change:
        """Return *change*, planned for *now_ns*, extended by new times of the directories *inos*."""
        if not inos:
            return change
        draft = Draft(self._tree, now_ns)
        for ino in inos:
            draft.modify(ino)
        return Change((*draft.change(grows=False).ops, *change.ops), change.grows)

    def _changed_in(self, op: PutInode | PutChunks | DropChunks) -> tuple[int, ...]:
        """Return the directories of the file whose content *op* changes: none if it does not, or makes the file."""
        inode = self._tree.inodes.get(op.ino)
        if inode is None or (isinstance(op, PutInode) and op.attributes.size == inode.attributes.size):
            return ()
        return inode.parents

    def _above_name(self, op: PutEntry | DropEntry, change: Change) -> Iterable[int]:
        """Return the directories above a name that comes or goes. A skill that does is news to all of them."""
        if op.parent not in self._tree.inodes:
            return self._and_above(self._present(op.parent, change)) if op.name == SKILL else ()
        if op.name == SKILL or self._carries_skills(op):
            return self._and_above(op.parent)
        return self._chain(op.parent)

    def _present(self, ino: int, change: Change) -> int:
        """Return the directory in which *change* begins to grow the branch that brings in directory *ino*."""
        new = {op.ino: op.parent for op in change.ops if isinstance(op, PutEntry)}
        while ino not in self._tree.inodes:
            ino = new[ino]
        return ino

    def _carries_skills(self, op: PutEntry | DropEntry) -> bool:
        """Whether a directory with a skill in it, at any depth, gets or loses the name."""
        if not self._tree.skills:
            return False
        here = self._tree.directory(op.parent).entries.get(op.name)
        inos = {entry.ino for entry in (here, op) if isinstance(entry, (Entry, PutEntry))}
        directories = [ino for ino in inos & self._tree.inodes.keys() if self._tree.inode(ino).directory is not None]
        return any(self._tree.is_below(skill, ino) for skill in self._tree.skills for ino in directories)

    def _chain(self, ino: int) -> tuple[int, ...]:
        """Return the directories whose times move with directory *ino*: they begin there, or further up, or nowhere."""
        chain = self._chains.get(ino)
        if chain is None:
            above = tuple(self._and_above(ino))
            skills = self._tree.skills if self._kind is DirectoryMtime.SKILLS else set(above)
            first = next((index for index, each in enumerate(above) if each in skills), len(above))
            chain = self._chains[ino] = above[first:]
        return chain

    def _and_above(self, ino: int) -> Iterator[int]:
        while ino != ROOT:
            yield ino
            ino = self._tree.directory(ino).parent
        yield ROOT


def _brings_a_skill(change: Change) -> bool:
    for op in change.ops:  # noqa: SIM110 (a generator costs more than the loop, and every change comes here)
        if isinstance(op, PutEntry) and op.name == SKILL:
            return True
    return False
