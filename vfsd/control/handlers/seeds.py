"""The control operations on seeds. The rules are in :mod:`vfsd.files.seed`; nothing here knows one."""

import errno
from typing import Any

from vfsd.control.arguments import Arguments
from vfsd.control.protocol import path_text
from vfsd.control.server import ControlHandler
from vfsd.errors import FsError
from vfsd.files.seed import ListedSkill, Seeding
from vfsd.seeds.plan import PathNames
from vfsd.tree.change import PERMISSIONS

_DEFAULT_MODE = 0o644


def seed_operations(seeding: Seeding) -> dict[str, ControlHandler]:
    """Return the handlers, by operation. They call *seeding*."""

    async def seed_file(arguments: Arguments) -> dict[str, Any]:
        path, mode = arguments.path(), arguments.number("mode", _DEFAULT_MODE, most=PERMISSIONS)
        return {"path": arguments.text("path"), "changed": await seeding.file(path, arguments.data(), mode)}

    async def seed_skill(arguments: Arguments) -> dict[str, Any]:
        modes = arguments.numbers("modes", most=PERMISSIONS)
        contents = arguments.contents("files")
        unknown = modes.keys() - contents.keys()
        if unknown:
            raise FsError(errno.EINVAL, f"'modes' has {path_text(min(unknown))}, but 'files' does not")
        files = {path: (data, modes.get(path, _DEFAULT_MODE)) for path, data in contents.items()}
        skill, changed = await seeding.skill(arguments.path("dir"), files)
        return {"dir": arguments.text("dir"), "name": skill.name, "changed": changed}

    async def seed_list(arguments: Arguments) -> dict[str, Any]:
        return {
            "skills": [_skill(listed) for listed in seeding.skills()],
            "seeds": [{"path": _text(listed.names), "state": listed.state} for listed in seeding.seeds()],
        }

    async def seed_remove(arguments: Arguments) -> dict[str, Any]:
        return {"removed": await seeding.remove(arguments.path())}

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
