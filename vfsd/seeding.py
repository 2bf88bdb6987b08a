"""Seeding a mounted scope: skills, files and trees shown by their paths, listed, and taken away again.

For the start of a mount, from a disk, and for the control socket. Nothing here is ever sent to the store; a read-only
mount can be seeded like any other.
"""

import errno
import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

from vfsd.errors import FsError, UsageError
from vfsd.paths import Paths, Spot
from vfsd.reader import WHOLE_MAX, too_large
from vfsd.skills.frontmatter import FrontMatter, front_matter
from vfsd.skills.planting import Leaf, Names, Planted, Planting, Skill, Terms
from vfsd.skills.seeds import Listed
from vfsd.skills.sources import Source
from vfsd.tree.change import PERMISSIONS
from vfsd.tree.tree import SKILL
from vfsd.tree.whole import Whole
from vfsd.volume import Volume


class SkillListed(NamedTuple):
    """A seeded skill: the names that lead to its directory, what it is called, and its seeds by their names in it."""

    directory: Names
    skill: Skill
    files: list[Names]


class Seeding:
    """Seeds *volume* by *paths*; what is seeded belongs to this process's user.

    With *keep* a stored file stays in sight where a seed would stand. All methods raise FsError for what a path or a
    rule refuses (see :meth:`vfsd.paths.Paths.find`), and InDoubt where the last change is not settled.
    """

    def __init__(self, volume: Volume, paths: Paths, *, keep: bool) -> None:
        self._volume = volume
        self._tree = volume.tree
        self._seeds = volume.changes.seeds
        self._paths = paths
        self._terms = Terms(os.geteuid(), os.getegid(), keep)

    # --- showing

    async def start_with(self, sources: list[Source]) -> None:
        """Seed what a mount begins with. Raises UsageError, naming the place where that is not possible."""
        for source in sources:
            try:
                if source.skill is None:
                    await self._show(source.dest, source.leaves)
                else:
                    await self._show_skill(source.dest, source.leaves, source.skill)
            except FsError as error:
                place, remedy = (
                    os.fsdecode(source.dest),
                    "seed it elsewhere, or mount without it and move away what stands there",
                )
                raise UsageError(f"cannot seed {place}: {error.why}; {remedy}") from None

    async def file(self, path: bytes, data: bytes, mode: int) -> bool:
        """Show a file of *data* at *path*, in one step; return whether that changed anything.

        Errors: EFBIG, EISDIR, ENOTDIR.
        """
        return await self._show(path, {(): _file(data, mode)})

    async def skill(self, directory: bytes, files: Mapping[bytes, tuple[bytes, int]]) -> tuple[FrontMatter, bool]:
        """Show a skill of *files* (content and mode by relative path) at *directory*, in place of its former seeding.

        Return what its front matter says, and whether that changed anything. Errors: EINVAL (no usable front matter, or
        a path that leads out), EFBIG, EISDIR, ENOTDIR.
        """
        if sum(len(data) for data, _ in files.values()) > WHOLE_MAX:
            raise too_large("seed it in parts")
        skill = front_matter(_skill_md(files))
        leaves = {tuple(path.split(b"/")): _file(data, mode) for path, (data, mode) in files.items()}
        return skill, await self._show_skill(directory, leaves, skill)

    async def _show(self, path: bytes, leaves: Mapping[Names, Leaf]) -> bool:
        def plan(now_ns: int) -> Planted:
            planting = self._planting(now_ns)
            _put(planting, self._names(path, leaves), leaves)
            return planting.planted()

        return bool((await self._volume.changes.plant(plan)).change.ops)

    async def _show_skill(self, path: bytes, leaves: Mapping[Names, Leaf], said: FrontMatter) -> bool:
        def plan(now_ns: int) -> Planted:
            planting = self._planting(now_ns)
            top = self._spot(path).names
            directory = planting.directory(top, leaves[()].mode) if () in leaves else planting.directory(top)
            _put(planting, top, leaves)
            planting.name_skill(top, said.name, said.description)
            self._replace(planting, directory)
            return planting.planted()

        return bool((await self._volume.changes.plant(plan)).change.ops)

    def _replace(self, planting: Planting, directory: int) -> None:
        """Let go what was seeded as the skill of *directory* before, and is not asked for any more."""
        former = self._seeds.skill(directory)
        if former is not None:
            planting.remove_all(former.members - planting.places)

    def _names(self, path: bytes, leaves: Mapping[Names, Leaf]) -> Names:
        spot = self._paths.find(path, follow=False)
        if spot.slash and not stat.S_ISDIR(leaves[()].mode):
            raise FsError(errno.EISDIR, "a file is to be seeded: add its name to the path")
        return spot.names

    def _spot(self, path: bytes) -> Spot:
        spot = self._paths.find(path)
        if spot.inode is not None and spot.inode.directory is None:
            raise FsError(errno.ENOTDIR, "a file is there, where a skill needs a directory")
        return spot

    # --- taking away

    async def remove(self, path: bytes) -> int:
        """Show the seed at *path*, or all below it, no longer; return how many files that were.

        Errors: ENOENT (nothing is seeded there).
        """
        names = self._paths.find(path, follow=False).names

        def plan(now_ns: int) -> Planted:
            planting = self._planting(now_ns)
            places = [listed.place for listed in self._seeds.listing() if listed.names[: len(names)] == names]
            directories = self._seeds.directories_below(names)
            if not places and not directories:
                raise FsError(errno.ENOENT, "nothing is seeded there")
            planting.remove_all(places, directories)
            return planting.planted()

        planted = await self._volume.changes.plant(plan)
        self._seeds.forget_skills(names)
        return planted.removed

    # --- looking

    def seeds(self) -> list[Listed]:
        """Return all seeds but directories, and the stored files that were kept in place of one."""
        return self._seeds.listing()

    def skills(self) -> list[SkillListed]:
        """Return all seeded skills, by their directories."""
        seeds = {listed.place: listed.names for listed in self._seeds.listing()}
        known = self._seeds.known_paths()
        found = []
        for directory, _ in self._seeds.skills():
            skill, top = self._seeds.skill(directory), self._seeds.path(directory, known)
            assert skill is not None, "it was just listed"
            files = sorted(seeds[place][len(top) :] for place in skill.members if place in seeds)
            found.append(SkillListed(top, skill, files))
        return sorted(found, key=lambda listed: listed.directory)

    # --- common

    def _planting(self, now_ns: int) -> Planting:
        return Planting(self._tree, self._seeds.ledger, self._terms, now_ns)


def _put(planting: Planting, top: Names, leaves: Mapping[Names, Leaf]) -> None:
    for names in sorted(leaves):
        planting.put((*top, *names), leaves[names])


def _file(data: bytes, mode: int) -> Leaf:
    if len(data) > WHOLE_MAX:
        raise too_large("seed it at the start of the mount")
    return Leaf(stat.S_IFREG | (mode & PERMISSIONS), Whole.of(data))


def _skill_md(files: Mapping[bytes, tuple[bytes, int]]) -> bytes:
    if SKILL not in files:
        raise FsError(errno.EINVAL, "a skill must have a file SKILL.md")
    return files[SKILL][0]
