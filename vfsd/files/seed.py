"""Seeding a mounted scope by paths: show skills, files and trees, list them, and remove them.

Used when a mount starts, with sources on disk, and by the control socket. Nothing here is ever sent to the store. So a
read-only mount can be seeded too.
"""

import errno
import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

import trio

from vfsd.errors import FsError, UsageError
from vfsd.files.content import content_of
from vfsd.files.read import MAX_BYTES, too_large
from vfsd.files.resolve import PathResolver, ResolvedPath
from vfsd.seeds.frontmatter import SKILL, FrontMatter, front_matter
from vfsd.seeds.overlay import ListedSeed
from vfsd.seeds.plan import PathNames, SeededSkill, SeedNode, SeedPlan, SeedPlanner, SeedTerms
from vfsd.seeds.seeded_volume import SeededVolume
from vfsd.seeds.sources import SeedSource
from vfsd.tree.change import PERMISSIONS
from vfsd.tree.tree import Tree

MAX_FILES = 1_000
"""Most files of a skill that one request seeds. They are shown in one step, and the mount waits for that."""


class ListedSkill(NamedTuple):
    """A seeded skill: the path of its directory, the skill, and the paths of its seeds below that directory."""

    directory: PathNames
    skill: SeededSkill
    files: list[PathNames]


class Seeding:
    """Seeds the volume of *seeded*, which holds *tree*, by *paths*. Seeds belong to the user of this process.

    With *keep* a stored file stays visible at a path where a seed should be. All methods raise FsError if a path cannot
    be followed (see :meth:`PathResolver.find`) or a rule forbids the seed, and InDoubt if the last change of an inode
    is in doubt.
    """

    def __init__(self, seeded: SeededVolume, tree: Tree, paths: PathResolver, *, keep: bool) -> None:
        self._volume, self._overlay = seeded.volume, seeded.overlay
        self._tree = tree
        self._paths = paths
        self._terms = SeedTerms(os.geteuid(), os.getegid(), keep)

    # --- showing

    async def start_with(self, sources: list[SeedSource]) -> None:
        """Seed what a mount starts with. Raises UsageError with the path if a seed is not possible there."""
        for source in sources:
            try:
                if source.skill is None:
                    await self._show(source.dest, source.nodes)
                else:
                    await self._show_skill(source.dest, source.nodes, source.skill)
            except FsError as error:
                raise UsageError(
                    f"cannot seed {os.fsdecode(source.dest)}: {error.why};"
                    " seed it elsewhere, or mount without it and move away what is there"
                ) from None

    async def file(self, path: bytes, data: bytes, mode: int) -> bool:
        """Show a file with content *data* at *path*, in one step. Return whether that changed anything.

        Errors: EFBIG, EISDIR, ENOTDIR.
        """
        return await self._show(path, {(): await _file(data, mode)})

    async def skill(self, directory: bytes, files: Mapping[bytes, tuple[bytes, int]]) -> tuple[FrontMatter, bool]:
        """Show a skill made of *files* (content and mode by relative path) at *directory*.

        It replaces the skill that was seeded there before. Return the front matter, and whether anything changed.
        Errors: EINVAL (no usable front matter, or a path that leads out of the directory), EFBIG, EISDIR, ENOTDIR.
        """
        if sum(len(data) for data, _ in files.values()) > MAX_BYTES:
            raise too_large("seed it in parts")
        if len(files) > MAX_FILES:
            raise FsError(errno.EFBIG, f"more than {MAX_FILES} files in one step; seed it at the start of the mount")
        skill = await trio.to_thread.run_sync(front_matter, _skill_md(files))
        nodes = {tuple(path.split(b"/")): await _file(data, mode) for path, (data, mode) in files.items()}
        return skill, await self._show_skill(directory, nodes, skill)

    async def _show(self, path: bytes, nodes: Mapping[PathNames, SeedNode]) -> bool:
        def plan(now_ns: int) -> SeedPlan:
            planner = self._planner(now_ns)
            _put_all(planner, self._names(path, nodes), nodes)
            return planner.plan()

        return bool((await self._volume.change_unstored(plan)).memory.ops)

    async def _show_skill(self, path: bytes, nodes: Mapping[PathNames, SeedNode], head: FrontMatter) -> bool:
        def plan(now_ns: int) -> SeedPlan:
            planner = self._planner(now_ns)
            top = self._skill_directory(path).names
            directory = planner.directory(top, nodes[()].mode) if () in nodes else planner.directory(top)
            _put_all(planner, top, nodes)
            planner.name_skill(top, head.name, head.description)
            self._remove_former(planner, directory)
            return planner.plan()

        return bool((await self._volume.change_unstored(plan)).memory.ops)

    def _remove_former(self, planner: SeedPlanner, directory: int) -> None:
        """Plan to remove the seeds of the skill seeded at *directory* before, except those that are seeded again."""
        former = self._overlay.skill(directory)
        if former is not None:
            planner.remove_all(former.members - planner.seeded_keys)

    def _names(self, path: bytes, nodes: Mapping[PathNames, SeedNode]) -> PathNames:
        resolved = self._paths.find(path, follow=False)
        if resolved.slash and not stat.S_ISDIR(nodes[()].mode):
            raise FsError(errno.EISDIR, "a file is to be seeded: add its name to the path")
        return resolved.names

    def _skill_directory(self, path: bytes) -> ResolvedPath:
        resolved = self._paths.find(path)
        if resolved.inode is not None and resolved.inode.directory is None:
            raise FsError(errno.ENOTDIR, "a file is there, where a skill needs a directory")
        return resolved

    # --- removing

    async def remove(self, path: bytes) -> int:
        """Remove the seed at *path*, or all seeds below it. Return how many files that were.

        Errors: ENOENT (nothing is seeded there).
        """
        names = self._paths.find(path, follow=False).names

        def plan(now_ns: int) -> SeedPlan:
            planner = self._planner(now_ns)
            keys = [listed.key for listed in self._overlay.listing() if listed.names[: len(names)] == names]
            directories = self._overlay.directories_below(names)
            if not keys and not directories:
                raise FsError(errno.ENOENT, "nothing is seeded there")
            planner.remove_all(keys, directories)
            return planner.plan()

        effects = await self._volume.change_unstored(plan)
        self._overlay.forget_skills(names)
        return effects.removed

    # --- listing

    def seeds(self) -> list[ListedSeed]:
        """Return all seeds except directories, and the stored files that were kept instead of a seed."""
        return self._overlay.listing()

    def skills(self) -> list[ListedSkill]:
        """Return all seeded skills, sorted by their directories."""
        seeds = {listed.key: listed.names for listed in self._overlay.listing()}
        known = self._overlay.known_paths()
        found = []
        for directory, _ in self._overlay.skills():
            skill, top = self._overlay.skill(directory), self._overlay.path(directory, known)
            assert skill is not None, "it was just listed"
            files = sorted(seeds[key][len(top) :] for key in skill.members if key in seeds)
            found.append(ListedSkill(top, skill, files))
        return sorted(found, key=lambda listed: listed.directory)

    # --- common

    def _planner(self, now_ns: int) -> SeedPlanner:
        return SeedPlanner(self._tree, self._overlay.index, self._terms, now_ns)


def _put_all(planner: SeedPlanner, top: PathNames, nodes: Mapping[PathNames, SeedNode]) -> None:
    for names in sorted(nodes):
        planner.put((*top, *names), nodes[names])


async def _file(data: bytes, mode: int) -> SeedNode:
    if len(data) > MAX_BYTES:
        raise too_large("seed it at the start of the mount")
    return SeedNode(stat.S_IFREG | (mode & PERMISSIONS), await content_of(data))


def _skill_md(files: Mapping[bytes, tuple[bytes, int]]) -> bytes:
    if SKILL not in files:
        raise FsError(errno.EINVAL, "a skill must have a file SKILL.md")
    return files[SKILL][0]
