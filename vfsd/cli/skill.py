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

from vfsd import mountpoint as places
from vfsd.answers import Seeds
from vfsd.cli.given import skill_given
from vfsd.client import Vfs, connect
from vfsd.errors import FsError, NotMounted, UsageError, VfsdError
from vfsd.skills.frontmatter import SKILL_FILE, front_matter
from vfsd.skills.planting import Leaf
from vfsd.skills.sources import SKILLS, Source, read_skill
from vfsd.tree import content

_STDIN = "-"
_PERMISSIONS = 0o7777


@click.group()
def skill() -> None:
    """Show skills in a live mount, list them, and take them away again. They are not stored."""


@skill.command()
@click.argument("mountpoint")
@click.argument("skills", nargs=-1, required=True, metavar="DIR[:DEST]...")
def add(mountpoint: str, skills: tuple[str, ...]) -> None:
    """Show each DIR, a directory with a SKILL.md, at /skills/NAME or DEST. For - as DIR, stdin is its SKILL.md."""
    sources = [read_skill(skill_given(text)) if _is_path(text) else None for text in skills]
    with _asking(mountpoint) as vfs:
        for text, source in zip(skills, sources, strict=True):
            _say(*(_add_text(vfs, text) if source is None else _add(vfs, source)))


def _is_path(text: str) -> bool:
    return text.partition(":")[0] != _STDIN


def _add(vfs: Vfs, source: Source) -> tuple[str, bool]:
    files = {b"/".join(names).decode(errors="surrogateescape"): leaf for names, leaf in source.leaves.items()}
    regular = {name: leaf for name, leaf in files.items() if stat.S_ISREG(leaf.mode)}
    skill_md = _bytes(source.leaves[SKILL_FILE,])
    others = {name: _bytes(leaf) for name, leaf in regular.items()}
    modes = {name: leaf.mode & _PERMISSIONS for name, leaf in regular.items()}
    dest = os.fsdecode(source.dest)
    return dest, vfs.seed_skill(dest, skill_md, files=others, modes=modes)


def _bytes(leaf: Leaf) -> bytes:
    return content.read(leaf.whole.chunks, leaf.whole.size, 0, leaf.whole.size)


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
    """List what is seeded, and what hides, or gave way to, a stored file."""
    with _asking(mountpoint) as vfs:
        found = vfs.seed_list()
    if as_json:
        skills = [one._asdict() for one in found.skills]
        click.echo(json.dumps({"skills": skills, "seeds": [seed._asdict() for seed in found.seeds]}, indent=2))
    else:
        _print(found)


def _print(found: Seeds) -> None:
    for one in found.skills:
        click.echo(_printable(f"{one.dir}  {one.name}, {len(one.files)} files: {' '.join(one.description.split())}"))
    meanings = {"shadows": "hides a stored file", "kept": "a stored file is shown in its place"}
    for seed in found.seeds:
        if seed.state in meanings:
            click.echo(_printable(f"{seed.path}  {meanings[seed.state]}"))
    inside = {f"{one.dir}/{name}" for one in found.skills for name in one.files}
    others = sum(seed.path not in inside for seed in found.seeds)
    click.echo(f"{len(found.skills)} skills, {others} other seeds")


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


@skill.command()
@click.argument("mountpoint")
@click.argument("which", metavar="NAME|PATH")
def remove(mountpoint: str, which: str) -> None:
    """Take away the skill called NAME, or the seeds at and below PATH; stored files they hid are seen again."""
    with _asking(mountpoint) as vfs:
        named = [one.dir for one in vfs.seed_list().skills if one.name == which]
        if len(named) > 1:
            raise UsageError(f"{which}: several skills are called so, at {', '.join(named)}: name one by its path")
        click.echo(f"removed {vfs.seed_remove(named[0] if named else which)} files")


@click.command()
@click.argument("mountpoint")
@click.argument("dest")
@click.option("--from", "source", required=True, metavar="FILE|-", help="The file to show; - is standard input.")
def seed(mountpoint: str, dest: str, source: str) -> None:
    """Show a file at DEST in a live mount. It is not stored."""
    data, mode = _read(source)
    with _asking(mountpoint) as vfs:
        _say(dest, vfs.seed_file(dest, data, mode=mode))


def _read(source: str) -> tuple[bytes, int]:
    if source == _STDIN:
        return sys.stdin.buffer.read(), 0o644
    try:
        return Path(source).read_bytes(), Path(source).stat().st_mode & _PERMISSIONS
    except OSError as error:
        raise UsageError(f"{source}: cannot be seeded: {error.strerror}") from None


@contextmanager
def _asking(mountpoint: str) -> Iterator[Vfs]:
    """Give a client of the mount at *mountpoint*; its errors become the command's. Raises VfsdError."""
    places.own_mount_at(places.absolute(mountpoint))
    try:
        with connect(mountpoint) as vfs:
            yield vfs
    except OSError as error:
        _fail(error)


def _fail(error: OSError) -> NoReturn:
    message = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
    if error.errno == errno.ECONNREFUSED:
        raise NotMounted(message) from None
    raise (UsageError if error.errno == errno.EINVAL else VfsdError)(message) from None
