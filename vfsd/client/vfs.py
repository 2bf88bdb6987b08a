"""Asking the daemon of a mount from any Python program: seeds, compare-and-write, whole files in one round trip.

``with vfsd.connect("/mnt/run-42") as vfs: vfs.write_file("notes/a.md", "text")``. Synchronous, and safe to share
between threads. It imports neither an event loop nor a store, and never touches the mount itself. The protocol is
docs/control.md.
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

Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""A path: relative to the mount's root, or absolute below the mountpoint."""

Data: TypeAlias = str | bytes | bytearray | memoryview
"""Content: text goes as UTF-8."""

_SKILL = "SKILL.md"


def connect(mountpoint: str | os.PathLike[str], *, timeout: float = 60.0) -> "Vfs":
    """Return a client of the daemon that serves *mountpoint*. It waits at most *timeout* seconds for an answer.

    Raises ConnectionRefusedError if no daemon of this user (or ``$VFSD_RUNTIME_DIR``) serves it.
    """
    path = mountpoints.absolute(os.fspath(mountpoint))
    vfs = Vfs(path, os.fspath(registrations.socket_path(path)), timeout)
    vfs.info()
    return vfs


class Vfs:
    """The files of the scope mounted at *mountpoint*, by way of the control socket *address*.

    Every method raises OSError of the class that its errno has (FileNotFoundError, …), StaleFileError, or
    ConnectionError or TimeoutError if the daemon went away: what was asked for may then have been done or not. A change
    is stored when its method returns.
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
        """Close the connection; the next call makes another."""
        with self._lock:
            self._connection.close()

    # --- seeding: what is seeded is shown, and never stored

    def seed_file(self, path: Path, data: Data, *, mode: int = 0o644) -> bool:
        """Show a file of *data* at *path*; return whether that changed anything."""
        result = self._ask("seed_file", path=_path(path), data=_data(data), mode=mode)
        return bool(result["changed"])

    def seed_skill(
        self,
        dir: Path,  # noqa: A002 (the protocol's word)
        skill_md: Data,
        references: Mapping[str, Data] | None = None,
        *,
        files: Mapping[str, Data] | None = None,
        modes: Mapping[str, int] | None = None,
    ) -> bool:
        """Show a whole skill at *dir* (``skills/review``), in place of what was seeded there; return if that is new.

        *skill_md* is its SKILL.md, *references* what is in its directory ``references``, by name, and *files* anything
        else, by path relative to *dir*. *modes* are permissions by that path (0o755 for a script), 0o644 by default.
        """
        named = {f"references/{name}": content for name, content in (references or {}).items()}
        given = {**(files or {}), **named, _SKILL: skill_md}
        encoded = {_path(name): _data(content) for name, content in given.items()}
        permissions = {_path(name): mode for name, mode in (modes or {}).items()}
        return bool(self._ask("seed_skill", dir=_path(dir), files=encoded, modes=permissions)["changed"])

    def seed_list(self) -> Seeds:
        """Return what is seeded."""
        result = self._ask("seed_list")
        skills = [Skill(*(skill[field] for field in Skill._fields)) for skill in result["skills"]]
        return Seeds(skills, [Seed(seed["path"], seed["state"]) for seed in result["seeds"]])

    def seed_remove(self, path: Path) -> int:
        """Show a seeded file, or a directory of seeded files, no longer; return how many files that were."""
        return int(self._ask("seed_remove", path=_path(path))["removed"])

    # --- content

    @overload
    def read_file(self, path: Path, *, offset: int = 0, length: int | None = None) -> bytes: ...

    @overload
    def read_file(self, path: Path, *, encoding: str, offset: int = 0, length: int | None = None) -> str: ...

    def read_file(
        self, path: Path, *, encoding: str | None = None, offset: int = 0, length: int | None = None
    ) -> bytes | str:
        """Return what a file contains, as text if an *encoding* is given; at most *length* bytes from *offset*."""
        result = self._ask("read_file", path=_path(path), offset=offset, length=length)
        content = base64.b64decode(result["data"])
        return content if encoding is None else content.decode(encoding)

    def write_file(  # noqa: PLR0913 (the options are independent, and named)
        self,
        path: Path,
        data: Data,
        *,
        expected_mtime_ns: int | None = None,
        create_only: bool = False,
        parents: bool = False,
        mode: int = 0o644,
    ) -> Written:
        """Let a file contain *data* and nothing else, in one step: a reader, or a crash, sees the old or the new.

        With *expected_mtime_ns* only if it was last modified exactly then, else StaleFileError; with *create_only* only
        if nothing is there, else FileExistsError. *parents* makes missing directories, *mode* is that of a new file.
        """
        terms = {"expected_mtime_ns": expected_mtime_ns, "create_only": create_only, "parents": parents, "mode": mode}
        return _written(self._ask("write_file", path=_path(path), data=_data(data), **terms))

    def append_file(self, path: Path, data: Data, *, parents: bool = False) -> Written:
        """Put *data* at the end of a file, or make one of it."""
        return _written(self._ask("append_file", path=_path(path), data=_data(data), parents=parents))

    def copy_file(self, source: Path, target: Path, *, overwrite: bool = True, parents: bool = False) -> Written:
        """Let the file *target* contain what *source* does."""
        options = {"overwrite": overwrite, "parents": parents}
        return _written(self._ask("copy_file", source=_path(source), target=_path(target), **options))

    # --- names

    def move_file(self, source: Path, target: Path, *, overwrite: bool = True, parents: bool = False) -> None:
        """Give what is at *source* the name *target*, replacing what is there unless *overwrite* is false."""
        options = {"overwrite": overwrite, "parents": parents}
        self._ask("move_file", source=_path(source), target=_path(target), **options)

    def delete_file(self, path: Path, *, missing_ok: bool = False) -> bool:
        """Remove a file, or whatever else is no directory; return whether it was there."""
        return bool(self._ask("delete_file", path=_path(path), missing_ok=missing_ok)["deleted"])

    def mkdir(self, path: Path, *, parents: bool = False, mode: int = 0o755) -> bool:
        """Make a directory; with *parents* those above it too, and it may be there. Return whether it is new."""
        return bool(self._ask("mkdir", path=_path(path), parents=parents, mode=mode)["created"])

    def rmdir(self, path: Path, *, recursive: bool = False, missing_ok: bool = False) -> None:
        """Remove a directory: an empty one, or if *recursive* with all that is in it."""
        self._ask("rmdir", path=_path(path), recursive=recursive, missing_ok=missing_ok)

    # --- looking

    def list_all_paths(self) -> list[str]:
        """Return the path of everything that is no directory, relative to the root, sorted."""
        return list(self._ask("list_all_paths")["paths"])

    def readdir(self, path: Path = "", *, recursive: bool = False) -> list[str]:
        """Return the names in a directory; if *recursive*, of all below it, as ``sub/x.md``."""
        entries = self._ask("readdir", path=_path(path), recursive=recursive)["entries"]
        return [entry["name"] for entry in entries]

    def exists(self, path: Path) -> bool:
        """Whether something is at *path*; links are followed."""
        return bool(self._ask("exists", path=_path(path))["exists"])

    def stat(self, path: Path, *, follow_symlinks: bool = True) -> Stat:
        """Return what is at *path*."""
        result = self._ask("stat" if follow_symlinks else "lstat", path=_path(path))
        return Stat(*(result[field] for field in Stat._fields))

    def realpath(self, path: Path) -> str:
        """Return the absolute path below the mountpoint, without links."""
        return str(self._ask("realpath", path=_path(path))["path"])

    # --- the scope

    def flush(self) -> None:
        """Return when all that was acknowledged is as safe as an fsync on the mount would make it."""
        self._ask("flush")

    def info(self) -> dict[str, Any]:
        """Return what the daemon says of itself and the scope."""
        return dict(self._ask("info"))

    def destroy(self) -> None:
        """Drop all that is stored of the scope, for good. The daemon unmounts and ends soon after this returns."""
        self._ask("destroy")
        self.close()

    def _ask(self, op: str, **arguments: Any) -> Any:
        try:
            with self._lock:
                answer = self._connection.ask(op, arguments)
        except RequestTooLong as error:
            raise OSError(errno.EFBIG, str(error), arguments.get("path")) from None
        except NoAnswer as error:
            raise _away(error, self.mountpoint) from None
        if not answer["ok"]:
            raise _error(answer["error"])
        return answer["result"]


def _path(path: Path) -> str:
    return path_text(os.fsencode(path))


def _data(data: Data) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def _written(result: dict[str, Any]) -> Written:
    return Written(result["mtime_ns"], result["size"], result["created"])


def _away(error: NoAnswer, mountpoint: str) -> OSError:
    """Return the exception for a daemon that gives no answer, or is not there at all."""
    if error.number in {errno.ENOENT, errno.ECONNREFUSED}:
        why = f"no daemon of this user serves it ({error}); 'vfsd status' lists the mounts of this host"
        return ConnectionRefusedError(errno.ECONNREFUSED, why, mountpoint)
    return OSError(error.number, str(error), mountpoint)


def _error(error: dict[str, Any]) -> OSError:
    """Return the exception that an error of the daemon's stands for, of the class that goes with its errno."""
    path, target = error.get("path"), error.get("target")
    named = " -> ".join(name for name in (path, target) if name is not None)
    message = error["message"].removeprefix(f"{named}: ")
    if "expected_mtime_ns" in error:
        return StaleFileError(message, path, error["expected_mtime_ns"], error["actual_mtime_ns"])
    return OSError(getattr(errno, error["code"], errno.EPROTO), message, path, None, target)
