"""``--debug``: one line for every request, with operation, path, arguments, result and duration.

The kernel speaks of inode numbers; the tracer remembers under which name each was last seen, for people, and for as
long as the kernel knows the number. Never installed otherwise: it costs as much as many a request.
"""

import inspect
import logging
import time
from functools import partial
from typing import Any, TypeAlias

import pyfuse3

from vfsd.fuse.guard import HANDLERS, Handler
from vfsd.tree.change import ROOT

_log = logging.getLogger(__name__)
_LONGEST = 64
_BY_HANDLE = frozenset(
    name for name in HANDLERS if "fh" in list(inspect.signature(getattr(pyfuse3.Operations, name)).parameters)[1:2]
)
"""Requests whose first argument is a handle, as pyfuse3 declares them."""
_EXCHANGE = 2  # RENAME_EXCHANGE, renameat2(2)

_Place: TypeAlias = tuple[int, bytes]
"""A directory's inode number, and a name in it."""


class _Names:
    """Under which name each inode was last seen. What is told late or twice does no harm: it is for people."""

    def __init__(self) -> None:
        self._places: dict[int, _Place] = {}
        self._inodes: dict[_Place, int] = {}

    def remember(self, ino: int, place: _Place) -> None:
        """Take *place* for the name of *ino* from now on."""
        self.forget(ino)
        self._places[ino] = place
        self._inodes[place] = ino

    def forget(self, ino: int) -> None:
        """Forget the name of *ino*."""
        place = self._places.pop(ino, None)
        if place is not None and self._inodes.get(place) == ino:
            del self._inodes[place]

    def move(self, source: _Place, target: _Place, *, exchange: bool) -> None:
        """Let what was seen at *source* be at *target*, and the other way round in an exchange."""
        moved, other = self._inodes.pop(source, None), self._inodes.pop(target, None)
        if moved is not None:
            self.remember(moved, target)
        if other is not None and exchange:
            self.remember(other, source)

    def path(self, ino: int) -> str:
        """Return the path of *ino* as far as it is known; it begins with the number of the first directory that is not.

        Names seen at different times may lead in a circle: the path ends where it would close.
        """
        parts: list[bytes] = []
        seen: set[int] = set()
        while ino in self._places and ino not in seen:
            seen.add(ino)
            ino, name = self._places[ino]
            parts.append(name)
        return ("/" if ino == ROOT else f"#{ino}/") + _text(b"/".join(reversed(parts)))


class Tracer:
    """Logs each request at level DEBUG."""

    def __init__(self) -> None:
        self._names = _Names()
        self._handles: dict[int, int] = {}

    def around(self, name: str, handler: Handler) -> Handler:
        """See :class:`vfsd.fuse.guard.Layer`."""
        return partial(self._traced, name, handler)

    async def _traced(self, name: str, handler: Handler, *arguments: Any) -> Any:
        subject = self._subject(name, arguments)
        started = time.perf_counter_ns()
        try:
            reply = await handler(*arguments)
        except Exception as error:
            self._tell(subject, str(error) or type(error).__name__, started)
            raise
        self._remember(name, arguments, reply)
        self._tell(subject, _shown(reply), started)
        return reply

    def _tell(self, subject: str, result: str, started: int) -> None:
        _log.debug("%s -> %s (%d us)", subject, result, (time.perf_counter_ns() - started) // 1000)

    def _subject(self, name: str, arguments: tuple[Any, ...]) -> str:
        if name in _BY_HANDLE:
            path = self._names.path(self._handles.get(arguments[0], 0))
            return f"{name} {path} fh={arguments[0]} {_arguments(arguments[1:])}"
        if name in {"forget", "statfs"}:
            return f"{name} {_arguments(arguments)}"
        return f"{name} {self._names.path(arguments[0])} {_arguments(arguments[1:])}"

    def _remember(self, name: str, arguments: tuple[Any, ...], reply: Any) -> None:
        """Take in what a request that succeeded says about names and handles."""
        self._remember_handle(name, arguments, reply)
        match name:
            case "create":
                self._remember_name(arguments, reply[1])
            case "lookup" | "mknod" | "mkdir" | "symlink":
                self._remember_name(arguments, reply)
            case "link":
                self._names.remember(arguments[0], arguments[1:3])
            case "rename":
                self._names.move(arguments[:2], arguments[2:4], exchange=bool(arguments[4] & _EXCHANGE))
            case "forget":
                for ino, _lookups in arguments[0]:
                    self._names.forget(ino)

    def _remember_name(self, arguments: tuple[Any, ...], attributes: pyfuse3.EntryAttributes) -> None:
        if attributes.st_ino and arguments[1] not in {b".", b".."}:
            self._names.remember(attributes.st_ino, arguments[:2])

    def _remember_handle(self, name: str, arguments: tuple[Any, ...], reply: Any) -> None:
        match name:
            case "create":
                self._handles[reply[0].fh] = reply[1].st_ino
            case "open":
                self._handles[reply.fh] = arguments[0]
            case "opendir":
                self._handles[reply] = arguments[0]
            case "release" | "releasedir":
                self._handles.pop(arguments[0], None)


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
