"""The control operations on seeds: arguments in, :mod:`vfsd.files.seed` asked, an answer out. No rules."""

import errno
from typing import Any

from vfsd.control.arguments import Arguments
from vfsd.control.protocol import path_text
from vfsd.control.server import ControlHandler
from vfsd.errors import FsError
from vfsd.files.seed import ListedSkill, Seeding
from vfsd.seeds.plan import PathNames
from vfsd.tree.change import PERMISSIONS

_MODE = 0o644


def seed_operations(seeding: Seeding) -> dict[str, ControlHandler]:
    """Return the handlers, by operation, that ask *seeding*."""

    async def seed_file(given: Arguments) -> dict[str, Any]:
        path, mode = given.path(), given.number("mode", _MODE, most=PERMISSIONS)
        return {"path": given.text("path"), "changed": await seeding.file(path, given.data(), mode)}

    async def seed_skill(given: Arguments) -> dict[str, Any]:
        modes = given.numbers("modes", most=PERMISSIONS)
        contents = given.contents("files")
        stray = modes.keys() - contents.keys()
        if stray:
            raise FsError(errno.EINVAL, f"'modes' has {path_text(min(stray))}, which 'files' has not")
        files = {path: (data, modes.get(path, _MODE)) for path, data in contents.items()}
        skill, changed = await seeding.skill(given.path("dir"), files)
        return {"dir": given.text("dir"), "name": skill.name, "changed": changed}

    async def seed_list(given: Arguments) -> dict[str, Any]:
        return {
            "skills": [_skill(listed) for listed in seeding.skills()],
            "seeds": [{"path": _text(listed.names), "state": listed.state} for listed in seeding.seeds()],
        }

    async def seed_remove(given: Arguments) -> dict[str, Any]:
        return {"removed": await seeding.remove(given.path())}

    return {"seed_file": seed_file, "seed_skill": seed_skill, "seed_list": seed_list, "seed_remove": seed_remove}


def _skill(listed: ListedSkill) -> dict[str, Any]:
    return {
        "dir": _text(listed.directory),
        "name": listed.skill.name,
        "description": listed.skill.description,
        "files": [_text(names) for names in listed.files],
    }


def _text(names: PathNames) -> str:
    return path_text(b"/".join(names))
