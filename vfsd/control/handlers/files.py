"""The control operations on files: arguments in, :mod:`vfsd.files` asked, an answer out. No rules."""

import base64
import stat
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from vfsd.control.arguments import Arguments
from vfsd.control.protocol import path_text
from vfsd.control.server import ControlHandler
from vfsd.files.read import FileReader
from vfsd.files.write import FileWriter, WriteOptions, WriteResult
from vfsd.tree.change import PERMISSIONS, Attributes

_TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}


class _Mounted(NamedTuple):
    reader: FileReader
    files: FileWriter


_Operation: TypeAlias = Callable[[_Mounted, Arguments], Awaitable[Any]]


def file_operations(reader: FileReader, files: FileWriter) -> dict[str, ControlHandler]:
    """Return the handlers, by operation, that read by *reader* and change by *files*."""
    mounted = _Mounted(reader, files)

    def bound(operation: _Operation) -> ControlHandler:
        return lambda given: operation(mounted, given)

    return {name: bound(operation) for name, operation in _OPERATIONS.items()}


# --- reading


async def _read_file(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    content = mounted.reader.read(given.path(), given.number("offset", 0), given.optional_number("length"))
    return {"data": base64.b64encode(content.data).decode(), "size": content.size, "mtime_ns": content.mtime_ns}


async def _readdir(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    found = mounted.reader.readdir(given.path(default=""), recursive=given.flag("recursive"))
    return {"entries": [{"name": path_text(name), **_brief(attributes)} for name, attributes in found]}


async def _list_all_paths(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    return {"paths": [path_text(path) for path in mounted.reader.all_paths()]}


async def _exists(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    return {"exists": mounted.reader.exists(given.path())}


async def _stat(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    return _full(*mounted.reader.stat(given.path()))


async def _lstat(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    return _full(*mounted.reader.stat(given.path(), follow=False))


async def _realpath(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    return {"path": path_text(mounted.reader.realpath(given.path()))}


def _brief(attributes: Attributes) -> dict[str, Any]:
    kind = _TYPES.get(stat.S_IFMT(attributes.mode), "other")
    return {"type": kind, "size": attributes.size, "mtime_ns": attributes.mtime_ns}


def _full(ino: int, attributes: Attributes) -> dict[str, Any]:
    plain = {name: getattr(attributes, name) for name in ("mode", "nlink", "uid", "gid", "ctime_ns", "atime_ns")}
    return {**_brief(attributes), "ino": ino, **plain}


# --- changing


async def _write_file(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    terms = WriteOptions(
        given.optional_number("expected_mtime_ns", least=-(2**63)),
        given.flag("create_only"),
        given.flag("parents"),
        given.number("mode", 0o644, most=PERMISSIONS),
    )
    return _said(await mounted.files.write(given.path(), given.data(), terms))


async def _append_file(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    return _said(await mounted.files.append(given.path(), given.data(), parents=given.flag("parents")))


async def _copy_file(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    source, target = given.path("source"), given.path("target")
    overwrite, parents = given.flag("overwrite", default=True), given.flag("parents")
    return _said(await mounted.files.copy(source, target, overwrite=overwrite, parents=parents))


async def _move_file(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    source, target = given.path("source"), given.path("target")
    overwrite, parents = given.flag("overwrite", default=True), given.flag("parents")
    await mounted.files.move(source, target, overwrite=overwrite, parents=parents)
    return {}


async def _delete_file(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    return {"deleted": await mounted.files.delete(given.path(), missing_ok=given.flag("missing_ok"))}


async def _mkdir(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    mode = given.number("mode", 0o755, most=PERMISSIONS)
    return {"created": await mounted.files.mkdir(given.path(), parents=given.flag("parents"), mode=mode)}


async def _rmdir(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    recursive, missing_ok = given.flag("recursive"), given.flag("missing_ok")
    await mounted.files.rmdir(given.path(), recursive=recursive, missing_ok=missing_ok)
    return {}


async def _flush(mounted: _Mounted, given: Arguments) -> dict[str, Any]:
    await mounted.files.flush()
    return {}


def _said(written: WriteResult) -> dict[str, Any]:
    return written._asdict()


_OPERATIONS: dict[str, _Operation] = {
    "read_file": _read_file,
    "readdir": _readdir,
    "list_all_paths": _list_all_paths,
    "exists": _exists,
    "stat": _stat,
    "lstat": _lstat,
    "realpath": _realpath,
    "write_file": _write_file,
    "append_file": _append_file,
    "copy_file": _copy_file,
    "move_file": _move_file,
    "delete_file": _delete_file,
    "mkdir": _mkdir,
    "rmdir": _rmdir,
    "flush": _flush,
}
