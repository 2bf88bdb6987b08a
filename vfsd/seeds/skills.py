"""The seeded skills by directory, by the names of their parts, and by the directories above them."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from vfsd.seeds.below import Below
from vfsd.seeds.plan import SeededSkill
from vfsd.tree.tree import Tree


class SkillIndex(Mapping[int, SeededSkill]):
    """The seeded skills of *tree*, by the inode numbers of their directories."""

    def __init__(self, tree: Tree) -> None:
        self._skills: dict[int, SeededSkill] = {}
        self._below = Below(tree)
        self._with_part: dict[bytes, dict[int, None]] = {}
        self._part_of: dict[int, int] = {}

    def __getitem__(self, directory: int) -> SeededSkill:
        return self._skills[directory]

    def __iter__(self) -> Iterator[int]:
        return iter(self._skills)

    def __len__(self) -> int:
        return len(self._skills)

    def add(self, skills: Mapping[int, SeededSkill]) -> None:
        """Add *skills*, by directory. Each replaces the one that its directory had."""
        for directory, skill in skills.items():
            self.discard((directory,))
            self._skills[directory] = skill
            self._below.add(directory)
            for name, ino in skill.parts:
                self._with_part.setdefault(name, {})[directory] = None
                self._part_of[ino] = directory

    def discard(self, directories: Iterable[int]) -> None:
        """Remove the skills of *directories*, as far as they have one."""
        for directory in tuple(directories):
            skill = self._skills.pop(directory, None)
            if skill is not None:
                self._below.discard(directory)
                self._drop_parts(directory, skill)

    def _drop_parts(self, directory: int, skill: SeededSkill) -> None:
        for name, ino in skill.parts:
            self._part_of.pop(ino, None)
            holders = self._with_part[name]
            holders.pop(directory, None)
            if not holders:
                del self._with_part[name]

    def forget_moved(self, moved: int) -> bool:
        """Record that directory *moved* has another name: it is no part of a skill any more, and holds no skill.

        Return whether that changed anything.
        """
        below = self._below.at_or_below(moved)
        changed = bool(below) or moved in self._part_of
        self.discard(below)
        directory = self._part_of.get(moved)
        if directory is not None:
            self.add({directory: self._skills[directory].without_part(moved)})
        return changed

    def with_part(self, name: bytes) -> Collection[int]:
        """Return the directories of the skills that have a part called *name*."""
        return self._with_part.get(name, {}).keys()
