"""``vfsd skill add|list|remove`` and ``vfsd seed``: files that a live mount shows and does not store."""

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from vfsd.cli.completers import complete_directories, complete_files, complete_mountpoints
from vfsd.cli.help import Command, Group, option
from vfsd.cli.output import say
from vfsd.cli.parsing import parse_given, parse_skill
from vfsd.cli.streams import read_input
from vfsd.client.results import Seeds
from vfsd.client.vfs import Vfs, connect
from vfsd.counted import counted
from vfsd.errors import FsError, NotMounted, StoreFull, UsageError, VfsdError
from vfsd.host import mountpoint as mountpoints
from vfsd.seeds.frontmatter import SKILL, front_matter
from vfsd.seeds.plan import SeedNode
from vfsd.seeds.sources import SKILLS, SeedSource, read_file, read_skill
from vfsd.tree.change import PERMISSIONS
from vfsd.tree.chunks import read_chunks

_STDIN = "-"
_DEFAULT_MODE = 0o644
"""Permissions of a file whose content comes from standard input."""
_WRONG_PATH = (errno.EINVAL, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EXDEV)
_ERRORS = {
    **dict.fromkeys((*_WRONG_PATH, errno.EFBIG), UsageError),
    errno.ECONNREFUSED: NotMounted,
    errno.ENOSPC: StoreFull,
}
"""The error of a command for each errno of the daemon. Any other errno is a plain VfsdError."""


@click.group(
    cls=Group, examples=["vfsd skill add mnt ./skills/review", "vfsd skill list mnt", "vfsd skill remove mnt review"]
)
def skill() -> None:
    """Show skills in a live mount, list them, and remove them. They are not stored."""


@skill.command(
    context_settings={"allow_interspersed_args": False},  # otherwise click takes -:DEST for an option
    examples=["vfsd skill add mnt ./skills/review", "vfsd skill add mnt -:/skills/plans < SKILL.md"],
)
@click.argument("mountpoint", shell_complete=complete_mountpoints)
@click.argument("skills", nargs=-1, required=True, metavar="DIR[:DEST]...", shell_complete=complete_directories)
def add(mountpoint: str, skills: tuple[str, ...]) -> None:
    """Show skills in a live mount, each at its DEST.

    DIR is a directory with a SKILL.md. Instead of DIR, - reads a SKILL.md from standard input: a skill with no other
    file. DEST follows the last colon. The default is /skills/NAME, with the name that the SKILL.md gives.
    """
    if sum(not _is_path(text) for text in skills) > 1:
        raise UsageError("only one skill can come on standard input: give the others as directories")
    sources = [read_skill(parse_skill(text)) if _is_path(text) else None for text in skills]
    with _connected(mountpoint) as vfs:
        for text, source in zip(skills, sources, strict=True):
            _print_seeded(*(_add_from_stdin(vfs, text) if source is None else _add(vfs, source)))


def _is_path(text: str) -> bool:
    return text.partition(":")[0] != _STDIN


def _add(vfs: Vfs, source: SeedSource) -> tuple[str, bool]:
    """Seed *source*; return its path, and whether that changed anything."""
    files = {b"/".join(names).decode(errors="surrogateescape"): node for names, node in source.nodes.items()}
    regular = {name: node for name, node in files.items() if stat.S_ISREG(node.mode)}
    skill_md = _content(source.nodes[SKILL,])
    contents = {name: _content(node) for name, node in regular.items()}
    modes = {name: node.mode & PERMISSIONS for name, node in regular.items()}
    dest = os.fsdecode(source.dest)
    return dest, vfs.seed_skill(dest, skill_md, files=contents, modes=modes)


def _content(node: SeedNode) -> bytes:
    return read_chunks(node.content.chunks, node.content.size, 0, node.content.size)


def _add_from_stdin(vfs: Vfs, text: str) -> tuple[str, bool]:
    """Seed the SKILL.md on standard input; return the path of the skill, and whether that changed anything."""
    skill_md = read_input()
    try:
        dest = text.partition(":")[2] or f"{SKILLS}/{front_matter(skill_md).name}"
    except FsError as error:
        raise UsageError(f"standard input: {error.why}") from None
    return dest, vfs.seed_skill(dest, skill_md)


def _print_seeded(dest: str, changed: bool) -> None:
    say(f"seeded {dest}" if changed else f"{dest} is already seeded, with the same content")


@skill.command("list", examples=["vfsd skill list mnt"])
@click.argument("mountpoint", shell_complete=complete_mountpoints)
@option("--json", "as_json", is_flag=True, help="Print a JSON object: skills, and every seed with its state.")
def list_(mountpoint: str, as_json: bool) -> None:
    """List what is seeded.

    First the skills. Then the seeds that hide a stored file, or are hidden by one (--seed-policy keep).
    """
    with _connected(mountpoint) as vfs:
        seeds = vfs.seed_list()
    if as_json:
        skills = [listed._asdict() for listed in seeds.skills]
        click.echo(json.dumps({"skills": skills, "seeds": [listed._asdict() for listed in seeds.seeds]}, indent=2))
    else:
        _print_seeds(seeds)


def _print_seeds(seeds: Seeds) -> None:
    for listed in seeds.skills:
        description = " ".join(listed.description.split())
        say(f"{listed.dir or '/'}  {listed.name}, {counted(len(listed.files), 'file')}: {description}")
    meanings = {"shadows": "hides a stored file", "kept": "a stored file is shown in its place"}
    for file in seeds.seeds:
        if file.state in meanings:
            say(f"{file.path}  {meanings[file.state]}")
    in_skills = {f"{listed.dir}/{name}".lstrip("/") for listed in seeds.skills for name in listed.files}
    others = sum(file.path not in in_skills for file in seeds.seeds)
    say(f"{counted(len(seeds.skills), 'skill')}, {counted(others, 'other seed')}")


@skill.command(examples=["vfsd skill remove mnt review", "vfsd skill remove mnt /skills/review"])
@click.argument("mountpoint", shell_complete=complete_mountpoints)
@click.argument("which", metavar="NAME|PATH")
def remove(mountpoint: str, which: str) -> None:
    """Remove the skill called NAME, or all seeds at and below PATH.

    Stored files that they hid are visible again.
    """
    parse_given("NAME|PATH", which)
    with _connected(mountpoint) as vfs:
        named = [listed.dir or "/" for listed in vfs.seed_list().skills if listed.name == which]
        if len(named) > 1:
            raise UsageError(f"{which}: several skills have this name, at {', '.join(named)}: give the path of one")
        removed = vfs.seed_remove(named[0] if named else which)
        say(f"removed {counted(removed, 'file')}")


@click.command(cls=Command, examples=["vfsd seed mnt /notes/plan.md --from plan.md"])
@click.argument("mountpoint", shell_complete=complete_mountpoints)
@click.argument("dest")
@option(
    "--from",
    "source",
    required=True,
    metavar="FILE|-",
    shell_complete=complete_files,
    help="The file to show; - is standard input.",
)
def seed(mountpoint: str, dest: str, source: str) -> None:
    """Show a file at DEST in a live mount.

    It is not stored. To seed a whole tree use vfsd mount --seed, for a skill vfsd skill add.
    """
    parse_given("DEST", dest)
    data, mode = _read(source)
    with _connected(mountpoint) as vfs:
        _print_seeded(dest, vfs.seed_file(dest, data, mode=mode))


def _read(source: str) -> tuple[bytes, int]:
    """Return the content and the permissions of *source*. Raises UsageError."""
    if source == _STDIN:
        return read_input(), _DEFAULT_MODE
    return read_file(source)


@contextmanager
def _connected(mountpoint: str) -> Iterator[Vfs]:
    """Yield a client of the mount at *mountpoint*; errors of the client become errors of the command (VfsdError)."""
    mount = mountpoints.own_mount_at(mountpoints.absolute(mountpoint))
    try:
        with connect(mountpoint) as vfs:
            yield vfs
    except ConnectionRefusedError as error:
        _raise_for_nobody(mount)
        _raise_for(error)
    except OSError as error:
        _raise_for(error)


def _raise_for_nobody(mount: mountpoints.Mount) -> None:
    """Raise NotMounted if it is known why no daemon of this user serves *mount*."""
    if mount.user not in {None, os.geteuid()}:
        raise NotMounted(f"{mount.mountpoint}: uid {mount.user} has mounted it: run this command as that user")
    if mountpoints.health(mount.mountpoint) is mountpoints.Health.DEAD:
        raise NotMounted(
            f"{mount.mountpoint}: its daemon has ended: mount scope {mount.scope} there again with 'vfsd mount'"
        )


def _raise_for(error: OSError) -> NoReturn:
    message = str(error.strerror) if error.filename is None else f"{error.filename or '/'}: {error.strerror}"
    raise _ERRORS.get(error.errno or 0, VfsdError)(message) from None
