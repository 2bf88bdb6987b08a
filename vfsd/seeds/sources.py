"""Reading skills and other seeds from disk.

These functions block: they are for commands, and for a thread of the daemon before it mounts. A tree that is not a
skill is seeded as it is: a symbolic link in it stays one and must never be followed, because it may lead out of the
tree. In a skill symbolic links are followed, because their targets would be missing where the skill is shown.
"""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vfsd.config import SeedSpec
from vfsd.errors import FsError, UsageError
from vfsd.seeds.frontmatter import SKILL, FrontMatter, front_matter
from vfsd.seeds.plan import PathNames, SeedNode
from vfsd.tree.change import PERMISSIONS
from vfsd.tree.plan_subtree import FileContent

SKILLS = "/skills"
"""Where skills are shown unless a destination is given."""


class SeedSource(NamedTuple):
    """What to seed at *dest*: *nodes* by their paths below it. If it is a skill, *skill* is its front matter."""

    dest: bytes
    nodes: dict[PathNames, SeedNode]
    skill: FrontMatter | None = None


def check_sources(skills: tuple[SeedSpec, ...], seeds: tuple[SeedSpec, ...]) -> None:
    """Check that *skills* are skills and that *seeds* exist, before a mount starts. Raises UsageError."""
    for given in skills:
        _front_matter(given.source)
    for given in seeds:
        if not Path(given.source).exists():
            raise UsageError(f"{given.source}: cannot be seeded: {os.strerror(errno.ENOENT)}")


def read_skill(given: SeedSpec) -> SeedSource:
    """Read the directory of a skill. Raises UsageError if it cannot be read or is not a skill."""
    skill = _front_matter(given.source)
    dest = f"{SKILLS}/{skill.name}" if given.dest is None else given.dest
    return SeedSource(os.fsencode(dest), _read(given.source, links=False), skill)


def _front_matter(source: str) -> FrontMatter:
    path = Path(source, os.fsdecode(SKILL))
    try:
        return front_matter(path.read_bytes())
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}; a skill is a directory with a SKILL.md, and what that refers to"
        ) from None
    except FsError as error:
        raise UsageError(f"{source}: {error.why}") from None


def read_seed(given: SeedSpec) -> SeedSource:
    """Read any file or tree. Raises UsageError if it cannot be read."""
    assert given.dest is not None, "the command line requires a destination for a seed"
    return SeedSource(os.fsencode(given.dest), _read(given.source, links=True))


def read_sources(skills: tuple[SeedSpec, ...], seeds: tuple[SeedSpec, ...]) -> list[SeedSource]:
    """Read all that a mount starts with. Seeds come first, so a skill may lie within one. Raises UsageError."""
    return [*map(read_seed, seeds), *map(read_skill, skills)]


def _read(source: str, *, links: bool) -> dict[PathNames, SeedNode]:
    try:
        return dict(_walk(Path(source).resolve(strict=True), (), (), links=links))
    except OSError as error:
        raise UsageError(f"{error.filename or source}: cannot be seeded: {error.strerror}") from None
    except RuntimeError:
        raise UsageError(f"{source}: cannot be seeded: its links lead round in a circle") from None


def _walk(
    path: Path, names: PathNames, above: tuple[tuple[int, int], ...], *, links: bool
) -> Iterator[tuple[PathNames, SeedNode]]:
    info = path.stat(follow_symlinks=not links)
    mode = stat.S_IFMT(info.st_mode) | (info.st_mode & PERMISSIONS)
    if stat.S_ISLNK(mode):
        yield names, SeedNode(stat.S_IFLNK | 0o777, FileContent(), os.readlink(os.fsencode(path)))  # noqa: PTH115 (bytes, exactly as the link has them)
    elif stat.S_ISREG(mode):
        yield names, SeedNode(mode, FileContent.of(path.read_bytes()))
    elif not stat.S_ISDIR(mode):
        raise UsageError(f"{path}: cannot be seeded: neither a file, a directory nor a link")
    elif (identity := (info.st_dev, info.st_ino)) in above:
        raise UsageError(f"{path}: cannot be seeded: its links lead round in a circle")
    else:
        yield names, SeedNode(mode)
        for child in sorted(path.iterdir()):
            yield from _walk(child, (*names, os.fsencode(child.name)), (*above, identity), links=links)
