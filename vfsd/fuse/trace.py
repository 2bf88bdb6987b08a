"""``--debug``: one log line for every request, with operation, path, arguments, result and duration.

The kernel sends inode numbers. For readers the tracer remembers the last known name of each, as long as the kernel
knows the number. It is only installed with ``--debug``, because it costs as much as a small request.
"""

import inspect
import logging
import time
from functools import partial
from typing import Any

import pyfuse3

from vfsd.errors import VfsdError
from vfsd.fuse.guard import HANDLERS, Handler
from vfsd.tree.change import ROOT
from vfsd.tree.plan_names import RENAME_EXCHANGE, EntryKey

_log = logging.getLogger(__name__)
_TEXT_MAX = 64
_CONTENT_ARGUMENT = {"write": 2, "setxattr": 2}
"""The position of the argument that is content."""
_CONTENT_REPLY = {"read", "getxattr"}
"""The requests whose reply is content."""
_BY_HANDLE = frozenset(
    name for name in HANDLERS if "fh" in list(inspect.signature(getattr(pyfuse3.Operations, name)).parameters)[1:2]
)
"""Requests whose first argument is a file handle, as pyfuse3 declares them."""


class _Names:
    """The last known name of each inode. It is only for the log: a name that is late or out of date does no harm."""

    def __init__(self) -> None:
        self._keys: dict[int, EntryKey] = {}
        self._inodes: dict[EntryKey, int] = {}

    def remember(self, ino: int, key: EntryKey) -> None:
        """Record *key* as the name of *ino*."""
        self.forget(ino)
        self._keys[ino] = key
        self._inodes[key] = ino

    def forget(self, ino: int) -> None:
        """Forget the name of *ino*."""
        key = self._keys.pop(ino, None)
        if key is not None and self._inodes.get(key) == ino:
            del self._inodes[key]

    def move(self, source: EntryKey, target: EntryKey, *, exchange: bool) -> None:
        """Record that the inode at *source* is at *target*, and in an *exchange* the other way round too."""
        moved, other = self._inodes.pop(source, None), self._inodes.pop(target, None)
        if moved is not None:
            self.remember(moved, target)
        if other is not None and exchange:
            self.remember(other, source)

    def path(self, ino: int) -> str:
        """Return the path of *ino*, as far as it is known.

        It begins with the number of the first directory whose name is not known. Names recorded at different times may
        form a circle: the path begins where it would close.
        """
        parts: list[bytes] = []
        visited: set[int] = set()
        while ino in self._keys and ino not in visited:
            visited.add(ino)
            ino, name = self._keys[ino]
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
        subject = self._subject(name, _without_content(name, arguments))
        started = time.perf_counter_ns()
        try:
            reply = await handler(*arguments)
        except Exception as error:
            self._log_line(subject, _failure(error), started)
            raise
        self._remember(name, arguments, reply)
        self._log_line(subject, _length(reply) if name in _CONTENT_REPLY else _described(reply), started)
        return reply

    def _log_line(self, subject: str, result: str, started: int) -> None:
        _log.debug("%s -> %s (%d us)", subject, result, (time.perf_counter_ns() - started) // 1000)

    def _subject(self, name: str, arguments: tuple[Any, ...]) -> str:
        if name in _BY_HANDLE:
            path = self._names.path(self._handles.get(arguments[0], 0))
            return f"{name} {path} fh={arguments[0]} {_arguments(arguments[1:])}"
        if name in {"forget", "statfs"}:
            return f"{name} {_arguments(arguments)}"
        return f"{name} {self._names.path(arguments[0])} {_arguments(arguments[1:])}"

    def _remember(self, name: str, arguments: tuple[Any, ...], reply: Any) -> None:
        """Record what a request that succeeded says about names and handles."""
        self._remember_handle(name, arguments, reply)
        match name:
            case "create":
                self._remember_name(arguments, reply[1])
            case "lookup" | "mknod" | "mkdir" | "symlink":
                self._remember_name(arguments, reply)
            case "link":
                self._names.remember(arguments[0], EntryKey(*arguments[1:3]))
            case "rename":
                source, target = EntryKey(*arguments[:2]), EntryKey(*arguments[2:4])
                self._names.move(source, target, exchange=bool(arguments[4] & RENAME_EXCHANGE))
            case "forget":
                for ino, _lookups in arguments[0]:
                    self._names.forget(ino)

    def _remember_name(self, arguments: tuple[Any, ...], attributes: pyfuse3.EntryAttributes) -> None:
        if attributes.st_ino and arguments[1] not in {b".", b".."}:
            self._names.remember(attributes.st_ino, EntryKey(*arguments[:2]))

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


def _failure(error: Exception) -> str:
    """Return what a failed request is logged with. The text of a bug is left out: it may quote content."""
    foreseen = isinstance(error, (VfsdError, pyfuse3.FUSEError))
    return str(error) if foreseen and str(error) else type(error).__name__


def _without_content(name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return *arguments* with the length in place of content, however short that is."""
    position = _CONTENT_ARGUMENT.get(name)
    if position is None:
        return arguments
    return (*arguments[:position], _length(arguments[position]), *arguments[position + 1 :])


def _length(content: bytes) -> str:
    return f"[{len(content)} bytes]"


def _arguments(arguments: tuple[Any, ...]) -> str:
    return " ".join(_described(argument) for argument in arguments)


def _described(value: Any) -> str:  # noqa: PLR0911 (one for each kind of value)
    """Return a short text for an argument or a reply. Of content only the length is shown."""
    match value:
        case None:
            return "ok"
        case bytes():
            return _text(value) if len(value) <= _TEXT_MAX else _length(value)
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
