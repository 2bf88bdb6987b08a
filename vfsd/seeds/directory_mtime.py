"""Directory times for programs that cache: which modification times a change sets in addition to what POSIX says.

Frameworks read a skill once, and again only when the modification time of its directory has moved. POSIX moves that
time when a name directly in the directory comes or goes, and not when anything deeper changes. So the rule here also
moves it for content and names below, from the nearest directory that holds a SKILL.md up to the root. A time that
nobody has seen need not move: nobody can tell the difference.

It is a hook of the pipeline. It looks at the tree and at planned changes and never changes the tree itself.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from vfsd.config import DirectoryMtime
from vfsd.scope.hooks import Effects, Hook, KernelCache, Mutation
from vfsd.seeds.below import and_above
from vfsd.seeds.distinct_times import distinct_from, modified
from vfsd.seeds.frontmatter import SKILL
from vfsd.tree.change import Change, DropChunks, DropEntry, DropInode, Op, PutChunks, PutEntry, PutInode
from vfsd.tree.draft import Draft
from vfsd.tree.inode import Entry, Inode
from vfsd.tree.tree import Tree

NewlyStored: TypeAlias = Callable[[Change], set[int]]
"""Returns the directories in which a change makes something stored that memory has already."""


class DirectoryTimes(Hook):
    """The rule *kind* for *tree*: ``skills`` or ``all``. With ``posix`` no time moves beyond what POSIX says.

    With every rule a change waits where a program that compares milliseconds would take its time for one that it has
    seen: for files below a directory with a SKILL.md, and for directories whose times the rule moves.

    *kernel* drops the attributes of directories whose times move. *is_stored* says whether the store has an inode.
    *newly_stored* are functions: each returns the directories in which a change stores what only memory has. ``skills``
    are the directories that hold a SKILL.md, seeded or not. ``skills_below`` is how many of them are at or below a
    directory, as far as there are any: counted, so that no change looks at skills that it does not concern.
    """

    def __init__(
        self,
        tree: Tree,
        kind: DirectoryMtime,
        kernel: KernelCache,
        is_stored: Callable[[int], bool],
        newly_stored: Sequence[NewlyStored],
    ) -> None:
        self._tree = tree
        self._kind = kind
        self._moves = kind is not DirectoryMtime.POSIX
        self._kernel = kernel
        self._is_stored = is_stored
        self._newly_stored = newly_stored
        self.skills: set[int] = set()
        self.skills_below: dict[int, int] = {}
        self._unstored: set[int] = set()
        """Directories whose present times the store does not have."""
        self._chains: dict[int, tuple[int, ...]] = {}
        """What :meth:`_chain` returned, while nothing moves: writes ask for the same directory again and again."""
        self._above: tuple[int, ...] = ()
        self._moved: tuple[int, ...] = ()
        self._rewritten: tuple[int, ...] = ()
        self._reshapes = False
        self._arriving: list[tuple[int, int]] = []
        """Directories that move, with the number of skills in them, from ``applying`` to ``applied``."""
        self.wakes_on = frozenset({SKILL})
        for ino, each in tree.inodes.items():
            if each.directory and SKILL in each.directory.entries:
                self._add_skill(ino)
        self._set_active()

    # --- the hook

    def later(self, change: Change) -> int:
        """See :meth:`Hook.later`."""
        return distinct_from(self._tree, change, lambda inode: self._is_compared(inode, change))

    def _is_compared(self, inode: Inode, change: Change) -> bool:
        """Whether frameworks compare the time of *inode* in milliseconds, once *change* is made."""
        if inode.directory is None:
            return any(above in self.skills for parent in inode.parents for above in self._and_above(parent))
        if self._kind is DirectoryMtime.SKILLS:
            return inode.ino in self.skills_below or inode.ino in self.above(change)
        return self._kind is DirectoryMtime.ALL

    def additions(self, change: Change, now_ns: int) -> tuple[Op, ...]:
        """See :meth:`Hook.additions`: new times of the directories above *change*, except those it moves itself."""
        due = self._due(change)
        return self._restamped(due, now_ns) if due else ()

    def _due(self, change: Change) -> set[int]:
        if not self._moves:
            return set()
        above = self.above(change)
        due = set(self.seen(above))
        if self._unstored:
            parents = {ino for newly_stored in self._newly_stored for ino in newly_stored(change)}
            around = {ino for parent in parents for ino in self._chain(parent)}
            due |= self._unstored & around.union(above)
        return due - {op.ino for op in change.ops if isinstance(op, PutInode)}

    def _restamped(self, inos: Iterable[int], now_ns: int) -> tuple[Op, ...]:
        draft = Draft(self._tree, now_ns)
        for ino in inos:
            draft.modify(ino)
        return draft.change(grows=False).ops

    def applying(self, effects: Effects) -> None:
        """See :meth:`Hook.applying`: what lies above the change can only be found before it is applied."""
        self._above = self.above(effects.memory)
        self._moved = self._moved_by(effects.memory)
        self._rewritten = tuple(
            inode.ino
            for inode, _ in modified(self._tree, effects.memory)
            if inode.directory is None and self._is_compared(inode, effects.memory)
        )
        self._reshapes = any(self._is_reshaping(op) for op in effects.memory.ops)
        if self._reshapes:
            self._leave(effects.memory)

    def applied(self, effects: Effects, inos: tuple[int, ...]) -> Mutation | None:
        """See :meth:`Hook.applied`.

        What the change has modified, or a directory above it, and somebody has seen now was seen while the commit was
        under way: its time must move again before the caller is answered.
        """
        if self._moved:
            self._kernel.forget_attributes(self._moved)
        self._record(effects)
        seen = self.seen((*self._above, *self._rewritten))
        return self._follow_up(seen) if seen else None

    def _follow_up(self, inos: tuple[int, ...]) -> Mutation:
        def plan(now_ns: int) -> Change:
            return Change(self._restamped(self.seen(inos), now_ns), grows=False)

        return Mutation(partial(self.seen, inos), plan, "new times")

    def _record(self, effects: Effects) -> None:
        """Record which directories hold a SKILL.md, and which have times that the store does not have."""
        if self._reshapes:
            self._arrive(effects.memory)
        self._unstored -= {op.ino for op in effects.store.ops if isinstance(op, (PutInode, DropInode))}
        if self._moves and effects.store is not effects.memory:
            stored = {op.ino for op in effects.store.ops if isinstance(op, PutInode)}
            times = (op.ino for op in effects.memory.ops if isinstance(op, PutInode) and op.attributes.is_directory)
            self._unstored |= {ino for ino in times if ino not in stored and self._is_stored(ino)}
        self._set_active()

    def _leave(self, change: Change) -> None:
        """Count the skills that *change*, which is not applied yet, takes away from the directories above them."""
        self._chains.clear()
        for op in change.ops:
            if isinstance(op, DropEntry) and op.name == SKILL:
                self._discard_skill(op.parent)
        for op in change.ops:
            if isinstance(op, PutEntry) and self._moves_directory(op) and op.ino in self.skills_below:
                self._arriving.append((op.ino, self.skills_below[op.ino]))
        for ino, skills in self._arriving:
            self._count(self._tree.directory(ino).parent, -skills)

    def _arrive(self, change: Change) -> None:
        """Count the skills that *change*, which is applied by now, brings to the directories above them."""
        for ino, skills in self._arriving:
            self._count(self._tree.directory(ino).parent, skills)
        self._arriving.clear()
        for op in change.ops:
            if isinstance(op, PutEntry) and op.name == SKILL:
                self._add_skill(op.parent)

    def _add_skill(self, directory: int) -> None:
        if directory not in self.skills:
            self.skills.add(directory)
            self._count(directory, +1)

    def _discard_skill(self, directory: int) -> None:
        if directory in self.skills:
            self.skills.discard(directory)
            self._count(directory, -1)

    def _count(self, directory: int, skills: int) -> None:
        """Add *skills* to the number of skills below *directory* and the directories above it."""
        for ino in and_above(self._tree, directory):
            below = self.skills_below.get(ino, 0) + skills
            if below:
                self.skills_below[ino] = below
            else:
                del self.skills_below[ino]

    def _set_active(self) -> None:
        self.active = bool(self.skills_below or self._unstored) or self._kind is DirectoryMtime.ALL

    # --- which directories

    def above(self, change: Change) -> tuple[int, ...]:
        """Return the directories whose times *change*, which is not applied yet, must move.

        For each content or name that changes these are the directories above it, from the nearest one that holds a
        SKILL.md before or after the change, up to the root. The rule ``all`` has all directories above it.
        """
        found: set[int] = set()
        for op in change.ops if self._moves else ():
            if isinstance(op, (PutEntry, DropEntry)):
                found.update(self._above_name(op, change))
            elif isinstance(op, DropInode):
                self._chains.pop(op.ino, None)
            else:
                for parent in self._changed_in(op):
                    found.update(self._chain(parent))
        return tuple(found)

    def _moved_by(self, change: Change) -> tuple[int, ...]:
        """Return the directories whose times *change* moves and which somebody may have cached.

        Times that move as POSIX says count too. The program that makes a name learns them with the answer; all others
        must learn them at once.
        """
        if not self._moves:
            return ()
        inos = (op.ino for op in change.ops if isinstance(op, PutInode) and op.attributes.is_directory)
        if self._kind is DirectoryMtime.ALL:
            return tuple(inos)
        return tuple(ino for ino in inos if ino in self.skills_below or ino in self._above)

    def seen(self, inos: Iterable[int]) -> tuple[int, ...]:
        """Return those of *inos* that exist and whose present modification time somebody has seen."""
        present = ((ino, self._tree.inodes.get(ino)) for ino in inos)
        return tuple(ino for ino, inode in present if inode is not None and inode.shown and not inode.is_orphan)

    def _changed_in(self, op: PutInode | PutChunks | DropChunks) -> Iterable[int]:
        """Return the directories of the file whose content *op* changes: none if it changes none, or makes the file."""
        inode = self._tree.inodes.get(op.ino)
        if inode is None or (isinstance(op, PutInode) and op.attributes.size == inode.attributes.size):
            return ()
        return inode.parents

    def _above_name(self, op: PutEntry | DropEntry, change: Change) -> Iterable[int]:
        """Return the directories above a name that comes or goes. A SKILL.md is news to all of them."""
        if op.parent not in self._tree.inodes:
            return self._and_above(self._first_present(op.parent, change)) if op.name == SKILL else ()
        if op.name == SKILL or self._carries_skills(op):
            return self._and_above(op.parent)
        return self._chain(op.parent)

    def _first_present(self, ino: int, change: Change) -> int:
        """Return the directory in the tree to which *change* adds the branch that has the new directory *ino*."""
        new = {op.ino: op.parent for op in change.ops if isinstance(op, PutEntry)}
        while ino not in self._tree.inodes:
            ino = new[ino]
        return ino

    def _carries_skills(self, op: PutEntry | DropEntry) -> bool:
        """Whether the name comes to or goes from a directory that has a skill in it, at any depth."""
        if not self.skills_below:
            return False
        here = self._tree.directory(op.parent).entries.get(op.name)
        return any(entry.ino in self.skills_below for entry in (here, op) if isinstance(entry, (Entry, PutEntry)))

    def _is_reshaping(self, op: Op) -> bool:
        """Whether *op* changes which directories lie above a skill: a SKILL.md comes or goes, or a directory moves."""
        if not isinstance(op, (PutEntry, DropEntry)):
            return False
        if op.name == SKILL:
            return True
        return isinstance(op, PutEntry) and self._moves_directory(op)

    def _moves_directory(self, op: PutEntry) -> bool:
        """Whether *op* gives a directory another parent."""
        moved = self._tree.inodes.get(op.ino)
        return moved is not None and moved.directory is not None and moved.directory.parent != op.parent

    def _chain(self, ino: int) -> tuple[int, ...]:
        """Return the directories whose times must move when something in directory *ino* changes, up to the root.

        There are none if the rule does not apply.
        """
        chain = self._chains.get(ino)
        if chain is None:
            above = tuple(self._and_above(ino))
            skills = self.skills if self._kind is DirectoryMtime.SKILLS else set(above)
            first = next((index for index, each in enumerate(above) if each in skills), len(above))
            chain = self._chains[ino] = above[first:]
        return chain

    def _and_above(self, ino: int) -> Iterator[int]:
        return and_above(self._tree, ino)
