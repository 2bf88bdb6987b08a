"""The overlay of seeds over a stored scope: which inodes are seeded, which skills there are, and what hides what.

It is a hook of the pipeline. It tells what the store must get of a change, and records a change only when memory has
taken it.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from vfsd.scope.hooks import Effects, Hook, Mutation, Usage
from vfsd.seeds.index import SeedIndex
from vfsd.seeds.plan import PathNames, SeededSkill, SeedPlan
from vfsd.seeds.skills import SkillIndex
from vfsd.seeds.translate import SeedEffects, translate
from vfsd.tree.change import ROOT, Change, DropChunks, DropEntry, DropInode, PutEntry, PutInode
from vfsd.tree.plan_names import EntryKey
from vfsd.tree.tree import Tree


class ListedSeed(NamedTuple):
    """A seed: the names that lead to it, its key, and ``seeded``, ``shadows`` or ``kept``."""

    names: PathNames
    key: EntryKey
    state: str


class SeedOverlay(Hook):
    """The seeds of *tree*. ``index`` is what of the tree is not stored."""

    def __init__(self, tree: Tree) -> None:
        self.index = SeedIndex(tree)
        self._tree = tree
        self._skills = SkillIndex(tree)
        self._consulted: set[int] = set()
        self.version = 0
        """Grows whenever what somebody found out from directories of skills (:meth:`consult`) may be different."""
        self.seedings = 0
        """How often something was seeded, or seeds were removed."""
        self._kept: dict[EntryKey, int] = {}

    # --- the hook

    def touched(self, inos: tuple[int, ...]) -> Iterable[int]:
        """See :meth:`Hook.touched`."""
        return self.index.touched(inos)

    def touched_below(self, directory: int) -> Iterable[int]:
        """See :meth:`Hook.touched_below`: seeds below a directory that moves become stored."""
        return self.index.below(directory)

    def effects(self, effects: Effects, inos: tuple[int, ...], now_ns: int) -> Effects:
        """See :meth:`Hook.effects`."""
        return translate(self._tree, self.index, effects.memory, now_ns) if self.index.homes else effects

    def applied(self, effects: Effects, inos: tuple[int, ...]) -> Mutation | None:
        """See :meth:`Hook.applied`."""
        if isinstance(effects, SeedPlan):
            self._seeded(effects)
            self.version += 1
            self.seedings += 1
        else:
            self._changed(effects)
        if self._consulted and not self._consulted.isdisjoint(_touched(effects.memory)):
            self._consulted.clear()
            self.version += 1
        self.active = bool(self.index.homes or self._skills)
        return None

    @property
    def unstored(self) -> Usage:
        """See :meth:`Hook.unstored`."""
        return Usage(self.index.content_bytes, len(self.index.homes))

    def newly_stored_in(self, change: Change) -> set[int]:
        """Return the directories in which *change* stores something that does not change there in memory.

        That is a seed that becomes stored, or a hidden stored file that somebody still has open and writes to.
        """
        homes = self.index.homes
        if not homes:
            return set()
        put = {op.ino for op in change.ops if isinstance(op, PutInode)}
        hidden = {key.parent for ino in put for key in self.index.hidden_at(ino)}
        inos = put & homes.keys()
        for op in change.ops:
            if isinstance(op, PutEntry) and op.ino in self._tree.inodes and self._is_directory(op.ino):
                inos.update(self.index.below(op.ino))
        return {homes[ino].parent for ino in inos} | hidden

    # --- recording

    def _changed(self, effects: Effects) -> None:
        """Record a change by somebody. A directory that it moved is no skill any more, and no part of one."""
        if self._skills:
            self._forget_skills(effects.memory)
        if not self.index.homes:
            return
        self._forget_dropped(effects.memory)
        for op in effects.memory.ops:
            if isinstance(op, DropChunks) and op.numbers is None:
                self.index.truncated(op.ino)
        for ino in effects.newly_stored:
            self.index.discard(ino)
        if isinstance(effects, SeedEffects):
            for key in effects.uncovered:
                self.index.uncover(key)

    def _forget_skills(self, change: Change) -> None:
        """Forget the skills and parts that *change* has moved or removed."""
        for op in change.ops:
            if isinstance(op, DropInode):
                self._skills.discard((op.ino,))
            elif isinstance(op, PutEntry) and self._is_directory(op.ino) and self._skills.forget_moved(op.ino):
                self.version += 1

    def _forget_dropped(self, change: Change) -> None:
        for op in change.ops:
            if isinstance(op, DropInode):
                self.index.discard(op.ino)

    def _seeded(self, plan: SeedPlan) -> None:
        """Record a seeding."""
        self._forget_dropped(plan.memory)
        self._skills.discard(op.ino for op in plan.memory.ops if isinstance(op, DropInode))
        for key in plan.restored:
            self.index.uncover(key)
        for ino, home in plan.homes.items():
            self.index.add(self._tree.inode(ino), home)
        for key, entry in plan.shadowed.items():
            self.index.hide(key, entry)
        self._kept.update(plan.kept)
        for key in plan.given_up:
            self._kept.pop(key, None)
        self._skills.add(plan.skills)

    def forget_skills(self, names: PathNames) -> None:
        """Forget the skills of the directories at and below *names*, and the skills that are gone."""
        known = self.known_paths()
        self._skills.discard(ino for ino in self._skills if self.path(ino, known)[: len(names)] == names)
        self.version += 1

    # --- looking

    def is_stored(self, ino: int) -> bool:
        """Whether the store has inode *ino*."""
        return ino not in self.index.homes

    def skill(self, directory: int) -> SeededSkill | None:
        """Return the skill of *directory*, if it is the directory of one."""
        return self._skills.get(directory)

    def skills(self) -> list[tuple[int, str]]:
        """Return the directory (inode number) and the name of every seeded skill that is still there."""
        return [(ino, skill.name) for ino, skill in self._skills.items()]

    def skills_with_part(self, name: bytes) -> Collection[int]:
        """Return the directories of the seeded skills that were seeded with a directory *name* that holds files."""
        return self._skills.with_part(name)

    def consult(self, inos: Iterable[int]) -> None:
        """Make ``version`` grow with the next change of one of the directories *inos*."""
        self._consulted.update(inos)

    @property
    def files(self) -> int:
        """How many seeded files there are, without directories."""
        return sum(not self._is_directory(ino) for ino in self.index.homes)

    @property
    def shadowing(self) -> int:
        """How many seeds hide a stored file."""
        return len(self.index.shadowed)

    def listing(self) -> list[ListedSeed]:
        """Return all seeds without directories, and the stored files that were kept in place of one, by their paths."""
        return sorted(self._listed())

    def _listed(self) -> Iterator[ListedSeed]:
        known = self.known_paths()
        for ino, key in self.index.homes.items():
            if not self._is_directory(ino):
                state = "shadows" if key in self.index.shadowed else "seeded"
                yield ListedSeed((*self.path(key.parent, known), key.name), key, state)
        for key in self.kept():
            yield ListedSeed((*self.path(key.parent, known), key.name), key, "kept")

    def _is_directory(self, ino: int) -> bool:
        return self._tree.inode(ino).directory is not None

    def kept(self) -> list[EntryKey]:
        """Return the keys where a stored file was kept in place of a seed and still is."""
        return [key for key, ino in self._kept.items() if self._is_kept(key, ino)]

    def _is_kept(self, key: EntryKey, ino: int) -> bool:
        child = self._tree.child(*key) if key.parent in self._tree.inodes else None
        return child is not None and child.ino == ino

    def directories_below(self, names: PathNames) -> list[int]:
        """Return the seeded directories at and below *names*, the deepest first."""
        known = self.known_paths()
        seeded = ((self.path(ino, known), ino) for ino in self.index.homes if self._is_directory(ino))
        below = [(path, ino) for path, ino in seeded if path[: len(names)] == names]
        return [ino for _, ino in sorted(below, key=lambda pair: -len(pair[0]))]

    def known_paths(self) -> dict[int, PathNames]:
        """Return what :meth:`path` starts with."""
        return {ROOT: ()}

    def path(self, directory: int, known: dict[int, PathNames]) -> PathNames:
        """Return the names that lead to *directory*. Paths in *known* are used, and new ones are added to it."""
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


def _touched(change: Change) -> Iterator[int]:
    """Yield the inodes that *change* changes."""
    for op in change.ops:
        yield op.parent if isinstance(op, (PutEntry, DropEntry)) else op.ino
