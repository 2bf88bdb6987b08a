"""``vfsd skill add|list|remove`` and ``vfsd seed``: what a live mount shows and does not store."""

import errno
import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import click

from vfsd.cli.given import skill_given
from vfsd.client.results import Seeds
from vfsd.client.vfs import Vfs, connect
from vfsd.errors import FsError, NotMounted, StoreFull, UsageError, VfsdError
from vfsd.host import mountpoint as mountpoints
from vfsd.seeds.frontmatter import SKILL, front_matter
from vfsd.seeds.plan import SeedNode
from vfsd.seeds.sources import SKILLS, SeedSource, read_skill
from vfsd.tree.change import PERMISSIONS
from vfsd.tree.chunks import read_chunks

_STDIN = "-"
_MODE = 0o644
"""Of what comes from a pipe."""
_PATHS = (errno.EINVAL, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EXDEV)
_KINDS = {
    **dict.fromkeys((*_PATHS, errno.EFBIG), UsageError),
    errno.ECONNREFUSED: NotMounted,
    errno.ENOSPC: StoreFull,
}
"""What a command ends with when the daemon answers so: what was asked for cannot be meant, unless it says otherwise."""


@click.group()
def skill() -> None:
    """Show skills in a live mount, list them, and take them away again. They are not stored."""


@skill.command(context_settings={"allow_interspersed_args": False})  # else -:DEST would be taken for an option
@click.argument("mountpoint")
@click.argument("skills", nargs=-1, required=True, metavar="DIR[:DEST]...")
def add(mountpoint: str, skills: tuple[str, ...]) -> None:
    """Show skills in a live mount, each at DEST.

    DIR is a directory with a SKILL.md; - stands for one with nothing else, whose SKILL.md comes on standard input.
    DEST follows the last colon, and is /skills/NAME by default, with the name that the SKILL.md says.
    """
    if sum(not _is_path(text) for text in skills) > 1:
        raise UsageError("only one skill can come on standard input: give the others as directories")
    sources = [read_skill(skill_given(text)) if _is_path(text) else None for text in skills]
    with _asking(mountpoint) as vfs:
        for text, source in zip(skills, sources, strict=True):
            _say(*(_add_text(vfs, text) if source is None else _add(vfs, source)))


def _is_path(text: str) -> bool:
    return text.partition(":")[0] != _STDIN


def _add(vfs: Vfs, source: SeedSource) -> tuple[str, bool]:
    files = {b"/".join(names).decode(errors="surrogateescape"): node for names, node in source.nodes.items()}
    regular = {name: node for name, node in files.items() if stat.S_ISREG(node.mode)}
    skill_md = _bytes(source.nodes[SKILL,])
    others = {name: _bytes(node) for name, node in regular.items()}
    modes = {name: node.mode & PERMISSIONS for name, node in regular.items()}
    dest = os.fsdecode(source.dest)
    return dest, vfs.seed_skill(dest, skill_md, files=others, modes=modes)


def _bytes(node: SeedNode) -> bytes:
    return read_chunks(node.content.chunks, node.content.size, 0, node.content.size)


def _add_text(vfs: Vfs, text: str) -> tuple[str, bool]:
    skill_md = sys.stdin.buffer.read()
    try:
        dest = text.partition(":")[2] or f"{SKILLS}/{front_matter(skill_md).name}"
    except FsError as error:
        raise UsageError(f"standard input: {error.why}") from None
    return dest, vfs.seed_skill(dest, skill_md)


def _say(dest: str, changed: bool) -> None:
    click.echo(f"seeded {dest}" if changed else f"{dest} is as it was seeded before")


@skill.command("list")
@click.argument("mountpoint")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object: skills, and every seed with its state.")
def list_(mountpoint: str, as_json: bool) -> None:
    """List what is seeded.

    Skills come first, then what hides a stored file, or gave way to one (--seed-policy keep).
    """
    with _asking(mountpoint) as vfs:
        found = vfs.seed_list()
    if as_json:
        skills = [one._asdict() for one in found.skills]
        click.echo(json.dumps({"skills": skills, "seeds": [seed._asdict() for seed in found.seeds]}, indent=2))
    else:
        _print(found)


def _print(found: Seeds) -> None:
    for one in found.skills:
        click.echo(
            _printable(f"{one.dir or '/'}  {one.name}, {len(one.files)} files: {' '.join(one.description.split())}")
        )
    meanings = {"shadows": "hides a stored file", "kept": "a stored file is shown in its place"}
    for seed in found.seeds:
        if seed.state in meanings:
            click.echo(_printable(f"{seed.path}  {meanings[seed.state]}"))
    inside = {f"{one.dir}/{name}".lstrip("/") for one in found.skills for name in one.files}
    others = sum(seed.path not in inside for seed in found.seeds)
    click.echo(f"{len(found.skills)} skills, {others} other seeds")


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


@skill.command()
@click.argument("mountpoint")
@click.argument("which", metavar="NAME|PATH")
def remove(mountpoint: str, which: str) -> None:
    """Take a skill or other seeds away.

    That is the skill called NAME, or all seeds at and below PATH. Stored files that they hid are seen again.
    """
    with _asking(mountpoint) as vfs:
        named = [one.dir or "/" for one in vfs.seed_list().skills if one.name == which]
        if len(named) > 1:
            raise UsageError(f"{which}: several skills are called so, at {', '.join(named)}: name one by its path")
        click.echo(f"removed {vfs.seed_remove(named[0] if named else which)} files")


@click.command()
@click.argument("mountpoint")
@click.argument("dest")
@click.option("--from", "source", required=True, metavar="FILE|-", help="The file to show; - is standard input.")
def seed(mountpoint: str, dest: str, source: str) -> None:
    """Show a file at DEST in a live mount.

    It is not stored. A whole tree is seeded by vfsd mount --seed, a skill by vfsd skill add.
    """
    data, mode = _read(source)
    with _asking(mountpoint) as vfs:
        _say(dest, vfs.seed_file(dest, data, mode=mode))


def _read(source: str) -> tuple[bytes, int]:
    if source == _STDIN:
        return sys.stdin.buffer.read(), _MODE
    try:
        mode = Path(source).stat().st_mode
        return Path(source).read_bytes(), mode & PERMISSIONS if stat.S_ISREG(mode) else _MODE
    except IsADirectoryError:
        raise UsageError(
            f"{source}: cannot be seeded: a directory; name a file of it, or seed it with vfsd mount --seed"
        ) from None
    except OSError as error:
        raise UsageError(f"{source}: cannot be seeded: {error.strerror}") from None


@contextmanager
def _asking(mountpoint: str) -> Iterator[Vfs]:
    """Give a client of the mount at *mountpoint*; its errors become the command's. Raises VfsdError."""
    mountpoints.own_mount_at(mountpoints.absolute(mountpoint))
    try:
        with connect(mountpoint) as vfs:
            yield vfs
    except OSError as error:
        _fail(error)


def _fail(error: OSError) -> NoReturn:
    message = str(error.strerror) if error.filename is None else f"{error.filename or '/'}: {error.strerror}"
    raise _KINDS.get(error.errno or 0, VfsdError)(message) from None
