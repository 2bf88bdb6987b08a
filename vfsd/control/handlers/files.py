"""The control operations on files. The rules are in :mod:`vfsd.files`; nothing here knows one."""

import stat
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from vfsd.control.arguments import Arguments
from vfsd.control.encoding import encoded_content, encoded_list
from vfsd.control.lines import Room, unlimited
from vfsd.control.protocol import path_text
from vfsd.control.server import ControlHandler
from vfsd.files.read import FileReader
from vfsd.files.walk import Listed
from vfsd.files.write import FileWriter, WriteOptions, WriteResult
from vfsd.tree.change import PERMISSIONS, Attributes

_TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}


class _Mounted(NamedTuple):
    reader: FileReader
    files: FileWriter
    room: Room


_Operation: TypeAlias = Callable[[_Mounted, Arguments], Awaitable[Any]]


def file_operations(reader: FileReader, files: FileWriter, room: Room = unlimited) -> dict[str, ControlHandler]:
    """Return the handlers, by operation. They read with *reader* and change with *files*.

    *room* limits the memory that an answer may take.
    """
    mounted = _Mounted(reader, files, room)

    def bound(operation: _Operation) -> ControlHandler:
        return lambda arguments: operation(mounted, arguments)

    return {name: bound(operation) for name, operation in _OPERATIONS.items()}


# --- reading


async def _read_file(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    content = mounted.reader.read(arguments.path(), arguments.number("offset", 0), arguments.optional_number("length"))
    return {"data": encoded_content(content), "size": content.size, "mtime_ns": content.mtime_ns}


async def _readdir(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    path, recursive = arguments.path(default=""), arguments.flag("recursive")
    with mounted.reader.readdir(path, recursive=recursive) as found:
        return {"entries": await encoded_list(map(_entry, found), mounted.room)}


def _entry(listed: Listed | None) -> dict[str, Any] | None:
    return None if listed is None else {"name": path_text(listed.path), **_listed(listed.attributes)}


async def _list_all_paths(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    with mounted.reader.all_paths() as paths:
        texts = (None if path is None else path_text(path) for path in paths)
        return {"paths": await encoded_list(texts, mounted.room)}


async def _exists(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    return {"exists": mounted.reader.exists(arguments.path())}


async def _stat(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    return _attributes(*mounted.reader.stat(arguments.path()))


async def _lstat(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    return _attributes(*mounted.reader.stat(arguments.path(), follow=False))


async def _realpath(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    return {"path": path_text(mounted.reader.realpath(arguments.path()))}


def _listed(attributes: Attributes) -> dict[str, Any]:
    kind = _TYPES.get(stat.S_IFMT(attributes.mode), "other")
    return {"type": kind, "size": attributes.size, "mtime_ns": attributes.mtime_ns}


def _attributes(ino: int, attributes: Attributes) -> dict[str, Any]:
    others = {name: getattr(attributes, name) for name in ("mode", "nlink", "uid", "gid", "ctime_ns", "atime_ns")}
    return {**_listed(attributes), "ino": ino, **others}


# --- changing


async def _write_file(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    options = WriteOptions(
        arguments.optional_number("expected_mtime_ns", least=-(2**63)),
        arguments.flag("create_only"),
        arguments.flag("parents"),
        arguments.number("mode", 0o644, most=PERMISSIONS),
    )
    return _written(await mounted.files.write(arguments.path(), arguments.data(), options))


async def _append_file(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    return _written(await mounted.files.append(arguments.path(), arguments.data(), parents=arguments.flag("parents")))


async def _copy_file(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    source, target = arguments.path("source"), arguments.path("target")
    overwrite, parents = arguments.flag("overwrite", default=True), arguments.flag("parents")
    return _written(await mounted.files.copy(source, target, overwrite=overwrite, parents=parents))


async def _move_file(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    source, target = arguments.path("source"), arguments.path("target")
    overwrite, parents = arguments.flag("overwrite", default=True), arguments.flag("parents")
    await mounted.files.move(source, target, overwrite=overwrite, parents=parents)
    return {}


async def _delete_file(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    return {"deleted": await mounted.files.delete(arguments.path(), missing_ok=arguments.flag("missing_ok"))}


async def _mkdir(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    mode = arguments.number("mode", 0o755, most=PERMISSIONS)
    return {"created": await mounted.files.mkdir(arguments.path(), parents=arguments.flag("parents"), mode=mode)}


async def _rmdir(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    recursive, missing_ok = arguments.flag("recursive"), arguments.flag("missing_ok")
    await mounted.files.rmdir(arguments.path(), recursive=recursive, missing_ok=missing_ok)
    return {}


async def _flush(mounted: _Mounted, arguments: Arguments) -> dict[str, Any]:
    await mounted.files.flush()
    return {}


def _written(written: WriteResult) -> dict[str, Any]:
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
