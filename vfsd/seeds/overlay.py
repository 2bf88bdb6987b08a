"""The overlay of seeds over a stored scope: who knows which inodes are seeded, which skills, and what hides what.

It changes with the tree, never before: every change is first translated, and entered in the books once it was applied.
"""

from collections.abc import Iterator
from typing import NamedTuple

from vfsd.seeds.index import SeedIndex
from vfsd.seeds.plan import PathNames, SeededSkill, SeedPlan
from vfsd.seeds.translate import Step, translate
from vfsd.tree.change import ROOT, Change, DropInode, PutEntry, PutInode
from vfsd.tree.plan_names import EntryKey
from vfsd.tree.tree import Tree


class ListedSeed(NamedTuple):
    """A seed: the names that lead to it, its place, and ``seeded``, ``shadows`` or ``kept``."""

    names: PathNames
    key: EntryKey
    state: str


class SeedOverlay:
    """The seeds of *tree*. ``ledger`` is what of the tree is not stored."""

    def __init__(self, tree: Tree) -> None:
        self.ledger = SeedIndex()
        self._tree = tree
        self._skills: dict[int, SeededSkill] = {}
        self._kept: dict[EntryKey, int] = {}

    # --- changes of the mount

    def touched(self, inos: tuple[int, ...]) -> tuple[int, ...]:
        """Return *inos* and what a change of them may touch because of seeds."""
        return self.ledger.touched(inos) if self.ledger.homes else inos

    def stirred(self, change: Change) -> set[int]:
        """Return the directories in which *change* may let seeds become stored: news to the store, if not to memory."""
        homes = self.ledger.homes
        if not homes:
            return set()
        inos = {op.ino for op in change.ops if isinstance(op, PutInode)} & homes.keys()
        for op in change.ops:
            if isinstance(op, PutEntry) and op.ino in self._tree.inodes and self._is_directory(op.ino):
                inos.update(self.ledger.below(self._tree, op.ino))
        return {homes[ino].parent for ino in inos}

    def translated(self, change: Change, now_ns: int) -> Step:
        """Return what *change*, planned at *now_ns*, is to memory and to the store."""
        return translate(self._tree, self.ledger, change, now_ns) if self.ledger.homes else Step(change, change)

    def applied(self, step: Step) -> None:
        """Enter a *step* that memory has taken. A directory that it moved is no skill any more, nor part of one."""
        if self._skills:
            self._let_go([op.ino for op in step.memory.ops if isinstance(op, PutEntry)])
        if self.ledger.homes:
            self._strike(step.memory)
            for ino in step.fresh:
                self.ledger.discard(ino)
            for key in step.bared:
                self.ledger.shadowed.pop(key, None)

    def _let_go(self, named: list[int]) -> None:
        for moved in (ino for ino in named if self._is_directory(ino)):
            left = [(ino, self._skills[ino]) for ino, _ in self.skills() if not self._tree.is_below(ino, moved)]
            self._skills = {ino: skill.without_part(moved) for ino, skill in left}

    def _strike(self, change: Change) -> None:
        for op in change.ops:
            if isinstance(op, DropInode):
                self.ledger.discard(op.ino)
                self._skills.pop(op.ino, None)

    # --- seeding

    def planted(self, planted: SeedPlan) -> None:
        """Enter a seeding that memory has taken."""
        self._strike(planted.change)
        for key in planted.restored:
            del self.ledger.shadowed[key]
        for ino, home in planted.homes.items():
            self.ledger.add(self._tree.inode(ino), home)
        self.ledger.shadowed.update(planted.shadowed)
        self._kept.update(planted.kept)
        for key in planted.given_up:
            self._kept.pop(key, None)
        self._skills.update(planted.skills)

    def forget_skills(self, names: PathNames) -> None:
        """Forget that the directories at and below *names* are those of skills, and those that are gone."""
        known = self.known_paths()
        there = (ino for ino, _ in self.skills())
        left = {ino for ino in there if self.path(ino, known)[: len(names)] != names}
        self._skills = {ino: skill for ino, skill in self._skills.items() if ino in left}

    def skill(self, directory: int) -> SeededSkill | None:
        """Return the skill of *directory*, if it is a skill's."""
        return self._skills.get(directory)

    # --- looking

    def skills(self) -> list[tuple[int, str]]:
        """Return the directory (inode number) and the name of every seeded skill that is still there."""
        return [(ino, skill.name) for ino, skill in self._skills.items() if self._is_there(ino)]

    def _is_there(self, ino: int) -> bool:
        inode = self._tree.inodes.get(ino)
        return inode is not None and not inode.is_orphan

    @property
    def files(self) -> int:
        """How many seeded files there are, directories left out."""
        return sum(not self._is_directory(ino) for ino in self.ledger.homes)

    @property
    def shadowing(self) -> int:
        """How many of them hide a stored file."""
        return len(self.ledger.shadowed)

    def listing(self) -> list[ListedSeed]:
        """Return all seeds but directories, and the stored files that were kept in place of one, by their paths."""
        return sorted(self._listed())

    def _listed(self) -> Iterator[ListedSeed]:
        known = self.known_paths()
        for ino, key in self.ledger.homes.items():
            if not self._is_directory(ino):
                state = "shadows" if key in self.ledger.shadowed else "seeded"
                yield ListedSeed((*self.path(key.parent, known), key.name), key, state)
        for key in self.kept():
            yield ListedSeed((*self.path(key.parent, known), key.name), key, "kept")

    def _is_directory(self, ino: int) -> bool:
        return self._tree.inode(ino).directory is not None

    def kept(self) -> list[EntryKey]:
        """Return the places where a stored file was kept in place of a seed, and still is."""
        return [key for key, ino in self._kept.items() if self._is_kept(key, ino)]

    def _is_kept(self, key: EntryKey, ino: int) -> bool:
        child = self._tree.child(*key) if key.parent in self._tree.inodes else None
        return child is not None and child.ino == ino

    def directories_below(self, names: PathNames) -> list[int]:
        """Return the seeded directories at and below *names*, the deepest first."""
        known = self.known_paths()
        seeded = ((self.path(ino, known), ino) for ino in self.ledger.homes if self._is_directory(ino))
        below = [(path, ino) for path, ino in seeded if path[: len(names)] == names]
        return [ino for _, ino in sorted(below, key=lambda pair: -len(pair[0]))]

    def known_paths(self) -> dict[int, PathNames]:
        """Return what :meth:`path` begins with."""
        return {ROOT: ()}

    def path(self, directory: int, known: dict[int, PathNames]) -> PathNames:
        """Return the names that lead to *directory*; what is *known* of others is looked up, and added to."""
        below: list[int] = []
        while directory not in known:
            below.append(directory)
            directory = self._tree.directory(directory).parent
        for ino in reversed(below):
            entries = self._tree.directory(directory).entries
            name = next(name for name, entry in entries.items() if entry.ino == ino)
            known[ino] = (*known[directory], name)
            directory = ino
        return known[directory]
