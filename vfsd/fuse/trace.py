"""``--debug``: one line for every request, with operation, path, arguments, result and duration.

The kernel speaks of inode numbers; the tracer remembers under which name each was last seen, for people. Never
installed otherwise: it costs as much as many a request.
"""

import logging
import time
from typing import Any

import pyfuse3

from vfsd.fuse.guard import Handler
from vfsd.tree.change import ROOT

_log = logging.getLogger(__name__)
_LONGEST = 64
_NAMING = frozenset({"lookup", "create", "mknod", "mkdir", "symlink"})


class Tracer:
    """Logs each request at level DEBUG."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[int, bytes]] = {}
        self._handles: dict[int, int] = {}

    async def observe(self, name: str, handler: Handler, arguments: tuple[Any, ...]) -> Any:
        """See :class:`vfsd.fuse.guard.Observer`."""
        subject = self._subject(name, arguments)
        started = time.perf_counter_ns()
        try:
            reply = await handler(*arguments)
        except pyfuse3.FUSEError as error:
            self._tell(subject, str(error), started)
            raise
        self._remember(name, arguments, reply)
        self._tell(subject, _shown(reply), started)
        return reply

    def _tell(self, subject: str, result: str, started: int) -> None:
        _log.debug("%s -> %s (%d us)", subject, result, (time.perf_counter_ns() - started) // 1000)

    def _subject(self, name: str, arguments: tuple[Any, ...]) -> str:
        if name in {"read", "write", "fsync", "release", "readdir", "releasedir", "fsyncdir", "flush"}:
            path = self._path(self._handles.get(arguments[0], 0))
            return f"{name} {path} fh={arguments[0]} {_arguments(arguments[1:])}"
        if name in {"forget", "statfs"}:
            return f"{name} {_arguments(arguments)}"
        return f"{name} {self._path(arguments[0])} {_arguments(arguments[1:])}"

    def _path(self, ino: int) -> str:
        parts: list[bytes] = []
        while ino != ROOT:
            if ino not in self._names:
                return f"#{ino}/" + _text(b"/".join(reversed(parts)))
            ino, name = self._names[ino]
            parts.append(name)
        return "/" + _text(b"/".join(reversed(parts)))

    def _remember(self, name: str, arguments: tuple[Any, ...], reply: Any) -> None:
        if name == "create":
            self._handles[reply[0].fh] = reply[1].st_ino
            reply = reply[1]
        elif name == "open":
            self._handles[reply.fh] = arguments[0]
        elif name == "opendir":
            self._handles[reply] = arguments[0]
        elif name == "link":
            self._names[arguments[0]] = (arguments[1], arguments[2])
        if name in _NAMING and reply.st_ino and arguments[1] not in {b".", b".."}:
            self._names[reply.st_ino] = (arguments[0], arguments[1])


def _arguments(arguments: tuple[Any, ...]) -> str:
    return " ".join(_shown(argument) for argument in arguments)


def _shown(value: Any) -> str:  # noqa: PLR0911 (one for each kind of value)
    """Return a short text for an argument or a reply; content is never shown, only its length."""
    match value:
        case None:
            return "ok"
        case bytes():
            return _text(value) if len(value) <= _LONGEST else f"[{len(value)} bytes]"
        case pyfuse3.EntryAttributes():
            return f"ino={value.st_ino} mode={value.st_mode:o} size={value.st_size} nlink={value.st_nlink}"
        case pyfuse3.RequestContext():
            return f"uid={value.uid} pid={value.pid}"
        case pyfuse3.FileInfo():
            return f"fh={value.fh}"
        case tuple():
            return _arguments(value)
        case pyfuse3.SetattrFields() | pyfuse3.ReaddirToken() | pyfuse3.StatvfsData():
            return type(value).__name__
        case _:
            return str(value)


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")
