"""The Python client of a mount's daemon: seeds, compare-and-write, whole files in one round trip.

``with vfsd.connect("/mnt/run-42") as vfs: vfs.write_file("notes/a.md", "text")``. It is synchronous, and threads may
share it. It loads neither an event loop nor a store, and never accesses the mount itself. docs/control.md describes the
protocol.
"""

import base64
import errno
import os
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TypeAlias, overload

from vfsd.client.connection import ControlConnection, NoAnswer, RequestTooLong
from vfsd.client.results import Seed, Seeds, Skill, StaleFileError, Stat, Written
from vfsd.control.protocol import path_text
from vfsd.host import mountpoint as mountpoints
from vfsd.host import registrations

FilePath: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""A path: relative to the mount's root, or absolute below the mountpoint."""

Content: TypeAlias = str | bytes | bytearray | memoryview
"""Content of a file. A str is encoded as UTF-8."""

_SKILL = "SKILL.md"


def connect(mountpoint: str | os.PathLike[str], *, timeout: float = 60.0) -> "Vfs":
    """Return a client of the daemon that serves *mountpoint*. It waits *timeout* seconds for an answer.

    Raises ConnectionRefusedError if no daemon of this user (or in ``$VFSD_RUNTIME_DIR``) serves it, TimeoutError if
    the daemon does not answer, PermissionError if another user listens in its place, VfsdError if the directory of
    registrations may be another user's, ``$VFSD_RUNTIME_DIR`` is relative, or *mountpoint* is empty or a loop of links.
    """
    path = mountpoints.absolute(os.fspath(mountpoint))
    vfs = Vfs(path, os.fspath(registrations.socket_path(path)), timeout)
    vfs.info()
    return vfs


class Vfs:
    """A client for the files of the scope mounted at *mountpoint*. It uses the control socket *address*.

    A change is stored when its method returns. Every method raises the subclass of OSError that belongs to the errno
    (FileNotFoundError, …), or StaleFileError. If the daemon went away, that is ConnectionError or TimeoutError: the
    request may then have been carried out or not.
    """

    def __init__(self, mountpoint: str, address: str, timeout: float) -> None:
        self.mountpoint = mountpoint
        self._connection = ControlConnection(address, timeout)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. The next call opens another."""
        with self._lock:
            self._connection.close()

    # --- seeds: files that are shown, and never stored

    def seed_file(self, path: FilePath, data: Content, *, mode: int = 0o644) -> bool:
        """Show a file with content *data* at *path*. Return whether that changed anything."""
        result = self._ask("seed_file", path=_path(path), data=_data(data), mode=mode)
        return bool(result["changed"])

    def seed_skill(
        self,
        dir: FilePath,  # noqa: A002 (the protocol's word)
        skill_md: Content,
        references: Mapping[str, Content] | None = None,
        *,
        files: Mapping[str, Content] | None = None,
        modes: Mapping[str, int] | None = None,
    ) -> bool:
        """Show a skill at *dir* (``skills/review``), instead of what was seeded there. Return whether that changed it.

        *skill_md* is the content of its SKILL.md. *references* has the content of the files in its directory
        ``references``, by name. *files* has the content of its other files, by path relative to *dir*. *modes* has
        permissions by such a path (0o755 for a script); the default is 0o644.
        """
        referenced = {f"references/{name}": content for name, content in (references or {}).items()}
        contents = {**(files or {}), **referenced, _SKILL: skill_md}
        encoded = {_path(name): _data(content) for name, content in contents.items()}
        permissions = {_path(name): mode for name, mode in (modes or {}).items()}
        return bool(self._ask("seed_skill", dir=_path(dir), files=encoded, modes=permissions)["changed"])

    def seed_list(self) -> Seeds:
        """Return all seeds of the mount."""
        result = self._ask("seed_list")
        skills = [Skill(*(skill[field] for field in Skill._fields)) for skill in result["skills"]]
        return Seeds(skills, [Seed(seed["path"], seed["state"]) for seed in result["seeds"]])

    def seed_remove(self, path: FilePath) -> int:
        """Remove a seeded file, or all seeded files below a directory. Return the number of files."""
        return int(self._ask("seed_remove", path=_path(path))["removed"])

    # --- content

    @overload
    def read_file(self, path: FilePath, *, offset: int = 0, length: int | None = None) -> bytes: ...

    @overload
    def read_file(self, path: FilePath, *, encoding: str, offset: int = 0, length: int | None = None) -> str: ...

    def read_file(
        self, path: FilePath, *, encoding: str | None = None, offset: int = 0, length: int | None = None
    ) -> bytes | str:
        """Return at most *length* bytes of a file from *offset*. With an *encoding*, return them as text."""
        result = self._ask("read_file", path=_path(path), offset=offset, length=length)
        content = base64.b64decode(result["data"])
        return content if encoding is None else content.decode(encoding)

    def write_file(  # noqa: PLR0913 (the options are independent, and named)
        self,
        path: FilePath,
        data: Content,
        *,
        expected_mtime_ns: int | None = None,
        create_only: bool = False,
        parents: bool = False,
        mode: int = 0o644,
    ) -> Written:
        """Replace the content of a file, in one step: a reader, and a crash, see the old content or the new.

        With *expected_mtime_ns* the file must have been last modified at exactly that time, else StaleFileError. With
        *create_only* the path must not exist, else FileExistsError. *parents* creates missing directories. *mode* is
        the mode of a new file.
        """
        options = {"expected_mtime_ns": expected_mtime_ns, "create_only": create_only, "parents": parents, "mode": mode}
        return _written(self._ask("write_file", path=_path(path), data=_data(data), **options))

    def append_file(self, path: FilePath, data: Content, *, parents: bool = False) -> Written:
        """Append *data* to a file, which is created if it is missing."""
        return _written(self._ask("append_file", path=_path(path), data=_data(data), parents=parents))

    def copy_file(
        self, source: FilePath, target: FilePath, *, overwrite: bool = True, parents: bool = False
    ) -> Written:
        """Replace the content of the file *target* with that of *source*."""
        options = {"overwrite": overwrite, "parents": parents}
        return _written(self._ask("copy_file", source=_path(source), target=_path(target), **options))

    # --- names

    def move_file(self, source: FilePath, target: FilePath, *, overwrite: bool = True, parents: bool = False) -> None:
        """Rename *source* to *target*. An existing *target* is replaced, unless *overwrite* is False."""
        options = {"overwrite": overwrite, "parents": parents}
        self._ask("move_file", source=_path(source), target=_path(target), **options)

    def delete_file(self, path: FilePath, *, missing_ok: bool = False) -> bool:
        """Remove a file, or anything else that is not a directory. Return whether it existed."""
        return bool(self._ask("delete_file", path=_path(path), missing_ok=missing_ok)["deleted"])

    def mkdir(self, path: FilePath, *, parents: bool = False, mode: int = 0o755) -> bool:
        """Create a directory. With *parents*, create those above it too, and accept an existing one. Return if new."""
        return bool(self._ask("mkdir", path=_path(path), parents=parents, mode=mode)["created"])

    def rmdir(self, path: FilePath, *, recursive: bool = False, missing_ok: bool = False) -> None:
        """Remove an empty directory; with *recursive*, also everything in it."""
        self._ask("rmdir", path=_path(path), recursive=recursive, missing_ok=missing_ok)

    # --- lookups

    def list_all_paths(self) -> list[str]:
        """Return the paths of everything that is not a directory, relative to the root, sorted."""
        return list(self._ask("list_all_paths")["paths"])

    def readdir(self, path: FilePath = "", *, recursive: bool = False) -> list[str]:
        """Return the names in a directory; with *recursive*, of everything below it, as ``sub/x.md``."""
        entries = self._ask("readdir", path=_path(path), recursive=recursive)["entries"]
        return [entry["name"] for entry in entries]

    def exists(self, path: FilePath) -> bool:
        """Return whether *path* exists. Links are followed."""
        return bool(self._ask("exists", path=_path(path))["exists"])

    def stat(self, path: FilePath, *, follow_symlinks: bool = True) -> Stat:
        """Return the attributes of *path*."""
        result = self._ask("stat" if follow_symlinks else "lstat", path=_path(path))
        return Stat(*(result[field] for field in Stat._fields))

    def realpath(self, path: FilePath) -> str:
        """Return the absolute path below the mountpoint, with all links resolved."""
        return str(self._ask("realpath", path=_path(path))["path"])

    # --- the scope

    def flush(self) -> None:
        """Wait until all acknowledged changes are as safe as an fsync on the mount makes them."""
        self._ask("flush")

    def info(self) -> dict[str, Any]:
        """Return facts about the daemon and the scope, as docs/control.md lists them."""
        return dict(self._ask("info"))

    def destroy(self) -> None:
        """Delete everything that is stored of the scope, for good. The daemon then unmounts, and ends."""
        self._ask("destroy")
        self.close()

    def _ask(self, op: str, **arguments: Any) -> Any:
        try:
            with self._lock:
                reply = self._connection.ask(op, arguments)
        except RequestTooLong as error:
            raise OSError(errno.EFBIG, str(error), arguments.get("path")) from None
        except NoAnswer as error:
            raise _no_answer(error, self.mountpoint) from None
        if not reply["ok"]:
            raise _os_error(reply["error"])
        return reply["result"]


def _path(path: FilePath) -> str:
    return path_text(os.fsencode(path))


def _data(data: Content) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def _written(result: dict[str, Any]) -> Written:
    return Written(result["mtime_ns"], result["size"], result["created"])


def _no_answer(error: NoAnswer, mountpoint: str) -> OSError:
    """Return the exception for a daemon that does not answer, or does not exist."""
    if error.number in {errno.ENOENT, errno.ECONNREFUSED}:
        why = f"no daemon of this user serves it ({error}); 'vfsd status' lists the mounts of this host"
        return ConnectionRefusedError(errno.ECONNREFUSED, why, mountpoint)
    return OSError(error.number, str(error), mountpoint)


def _os_error(error: dict[str, Any]) -> OSError:
    """Return the exception for an error in a reply: OSError picks the subclass that belongs to its errno."""
    path, target = error.get("path"), error.get("target")
    paths = " -> ".join(name for name in (path, target) if name is not None)
    message = error["message"].removeprefix(f"{paths}: ")  # OSError shows them itself
    if "expected_mtime_ns" in error:
        return StaleFileError(message, path, error["expected_mtime_ns"], error["actual_mtime_ns"])
    return OSError(getattr(errno, error["code"], errno.EPROTO), message, path, None, target)
