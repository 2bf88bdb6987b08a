"""Reading skills and other seeds from disk.

These functions block: they are for commands, and for a thread of the daemon before it mounts. A tree that is not a
skill is seeded as it is: a symbolic link in it stays one and must never be followed, because it may lead out of the
tree. In a skill symbolic links are followed, because their targets would be missing where the skill is shown.
:mod:`vfsd.seeds.untrusted` opens what is read: others may be able to change the directory at the same time.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from vfsd.config import SeedSpec
from vfsd.errors import FsError, UsageError
from vfsd.seeds.frontmatter import SKILL, FrontMatter, front_matter
from vfsd.seeds.plan import PathNames, SeedNode
from vfsd.seeds.untrusted import Budget, Opened, TooMuch, opened_inside, opened_source
from vfsd.tree.change import PERMISSIONS
from vfsd.tree.plan_subtree import FileContent

SKILLS = "/skills"
"""Where skills are shown unless a destination is given."""

_DEPTH_MAX = 256
"""Most directories inside each other. Each of them is open while it is read."""


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
        return front_matter(_skill_md(source))
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}; a skill is a directory with a SKILL.md, and what that refers to"
        ) from None
    except TooMuch as error:
        raise UsageError(f"{path}: {error}") from None
    except FsError as error:
        raise UsageError(f"{source}: {error.why}") from None


def _skill_md(source: str) -> bytes:
    with opened_source(source) as directory, opened_inside(directory, SKILL, links=False) as file:
        if not stat.S_ISREG(file.mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return b"".join(file.pieces(Budget()))


def read_seed(given: SeedSpec) -> SeedSource:
    """Read any file or tree. Raises UsageError if it cannot be read."""
    assert given.dest is not None, "the command line requires a destination for a seed"
    return SeedSource(os.fsencode(given.dest), _read(given.source, links=True))


def read_file(source: str) -> tuple[bytes, int]:
    """Return content and permissions of the regular file *source*. Raises UsageError."""
    walk = _Walk(source, links=False)
    with walk.refusing(), opened_source(source) as file:
        if stat.S_ISDIR(file.mode):
            raise walk.refused("a directory; name a file of it, or seed it with vfsd mount --seed")
        if not stat.S_ISREG(file.mode):
            raise walk.refused("not a regular file; - reads standard input")
        return b"".join(file.pieces(Budget())), file.mode & PERMISSIONS


def read_sources(skills: tuple[SeedSpec, ...], seeds: tuple[SeedSpec, ...]) -> list[SeedSource]:
    """Read all that a mount starts with. Seeds come first, so a skill may lie within one. Raises UsageError."""
    return [*map(read_seed, seeds), *map(read_skill, skills)]


def _read(source: str, *, links: bool) -> dict[PathNames, SeedNode]:
    walk = _Walk(source, links=links)
    with walk.refusing(), opened_source(source) as top:
        return dict(walk.nodes(top, (), ()))


class _Walk:
    """Reads everything below *source*. With *links* symbolic links stay links, otherwise they are followed."""

    def __init__(self, source: str, *, links: bool) -> None:
        self._links = links
        self._budget = Budget()
        self._path = Path(source)
        """What is being read, for the message of an error."""

    def refused(self, why: str) -> UsageError:
        """Return the error that says what cannot be seeded, and why."""
        return UsageError(f"{self._path}: cannot be seeded: {why}")

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Turn an error of the block into a UsageError that says what cannot be seeded, and why."""
        try:
            yield
        except OSError as error:
            raise self.refused(error.strerror or str(error)) from None
        except TooMuch as error:
            raise self.refused(str(error)) from None

    def nodes(
        self, node: Opened, names: PathNames, above: tuple[tuple[int, int], ...]
    ) -> Iterator[tuple[PathNames, SeedNode]]:
        """Yield *node*, which is at *names* below the source, and what is below it. *above* are its directories."""
        self._budget.take_name()
        if stat.S_ISLNK(node.mode):
            yield names, SeedNode(stat.S_IFLNK | 0o777, FileContent(), node.link_target())
        elif stat.S_ISREG(node.mode):
            yield names, SeedNode(node.mode, self._content(node))
        elif not stat.S_ISDIR(node.mode):
            raise self.refused("neither a file, a directory nor a link")
        elif node.identity in above:
            raise self.refused("its links lead round in a circle")
        elif len(above) == _DEPTH_MAX:
            raise self.refused(f"more than {_DEPTH_MAX} directories inside each other")
        else:
            yield names, SeedNode(node.mode)
            yield from self._below(node, names, (*above, node.identity))

    def _below(
        self, directory: Opened, names: PathNames, above: tuple[tuple[int, int], ...]
    ) -> Iterator[tuple[PathNames, SeedNode]]:
        path = self._path
        for name in directory.names():
            self._path = path / os.fsdecode(name)
            with opened_inside(directory, name, links=self._links) as child:
                yield from self.nodes(child, (*names, name), above)
        self._path = path

    def _content(self, file: Opened) -> FileContent:
        return FileContent.of(b"".join(file.pieces(self._budget)))
