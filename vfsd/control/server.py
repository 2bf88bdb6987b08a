"""The daemon's end of the control socket. A broken or hostile client harms only itself: lengths and waits are limited.

The socket has mode 0600, and the peer's uid is checked too. It never lies inside the mount. The requests of one client
are carried out one after another. Requests that a client sends early wait in the socket, and need no memory here.

The mount waits while this module is busy. So nothing here handles much at once: content is decoded as it arrives and
encoded as it is sent, and what is parsed in one piece has a limit.
"""

import errno
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import trio

from vfsd.control import protocol
from vfsd.control.arguments import Arguments
from vfsd.control.lines import Line, LineReader, Room, unlimited
from vfsd.errors import StaleFile, VfsdError, errno_of

_log = logging.getLogger(__name__)


class FinalAnswer(NamedTuple):
    """An answer after which the daemon ends. *then* is called when the client has the answer, or is gone."""

    result: Any
    then: Callable[[], None]


ControlHandler: TypeAlias = Callable[[Arguments], Awaitable[Any]]
"""Carries out one operation. Returns a value that JSON can represent, or :class:`FinalAnswer`. Raises VfsdError."""

_SEND_SECONDS = 60.0
"""Longest time in which a client must read one answer."""

_LONGEST_QUOTE = 4096
"""Most characters of a path, or of an operation, that an error repeats."""

_CREDENTIALS = struct.Struct("3i")
"""pid, uid, gid of the peer (:manpage:`unix(7)`, SO_PEERCRED)."""


def listen(path: Path) -> trio.SocketListener:
    """Return a listener at *path* for this user and root only. It replaces the socket of a dead daemon."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listening.bind(os.fspath(path))
    finally:
        os.umask(mask)
    listening.listen(16)
    return trio.SocketListener(trio.socket.from_stdlib_socket(listening))


async def serve(listener: trio.SocketListener, handlers: Mapping[str, ControlHandler], room: Room = unlimited) -> None:
    """Serve clients of *listener* until cancelled. *room* limits the memory that a request may take."""

    async def serve_one(stream: trio.SocketStream) -> None:
        try:
            if _is_allowed(stream):
                await _serve_client(stream, handlers, room)
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError) as error:
            _log.info("a control client went away: %s", error or type(error).__name__)
        except Exception:  # a bug met by one client must not end the mount
            _log.exception("a control client met a bug")
        finally:
            await trio.aclose_forcefully(stream)

    await trio.serve_listeners(serve_one, [listener])


def _is_allowed(stream: trio.SocketStream) -> bool:
    """Return whether the peer is this user or root."""
    raw = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(raw)
    return uid in {0, os.geteuid()}


async def _serve_client(stream: trio.SocketStream, handlers: Mapping[str, ControlHandler], room: Room) -> None:
    lines = LineReader(stream, protocol.LINE_MAX, room)
    while (line := await lines.next()) is not None:
        answer = await _answer(line, handlers)
        del line  # it may be large, and a slow client would keep it in memory
        try:
            with trio.fail_after(_SEND_SECONDS):
                for part in answer.parts:
                    await stream.send_all(part)
        finally:
            if answer.then is not None:
                answer.then()
        del answer  # it may be large too, and the next request may come much later, or never


class _Answer(NamedTuple):
    """A reply in parts, and a function to call after it was sent, or None."""

    parts: Iterator[bytes]
    then: Callable[[], None] | None = None


def _refused(reply: bytes) -> _Answer:
    return _Answer(iter((reply,)))


async def _answer(line: Line, handlers: Mapping[str, ControlHandler]) -> _Answer:
    """Carry out the request on *line*, and return the reply."""
    try:
        request = protocol.parse(line.text)
    except protocol.BadRequest as error:
        return _refused(protocol.refusal(error.ident, error.code, str(error)))
    handler = handlers.get(request.op)
    if handler is None:
        why = f"this daemon knows no {request.op[:_LONGEST_QUOTE]!r}"
        return _refused(protocol.refusal(request.ident, "ENOSYS", why))
    try:
        result = await handler(Arguments(request.arguments, line.contents, line.no_room))
        if isinstance(result, FinalAnswer):
            return _Answer(protocol.reply(request.ident, result.result), result.then)
        return _Answer(protocol.reply(request.ident, result))
    except VfsdError as error:
        return _refused(_refusal(request, errno_of(error), str(error), _details(error)))
    except Exception:  # a bug: the client gets an answer, and the mount goes on
        _log.exception("%s failed by a bug; the client gets EIO", request.op)
        return _refused(_refusal(request, errno.EIO, "a bug in the daemon; its log has the traceback", {}))


def _refusal(request: protocol.ControlRequest, number: int, why: str, details: dict[str, Any]) -> bytes:
    """Return the reply that refuses *request*. Its error repeats the paths of the request."""
    values = [request.arguments.get(name) for name in ("path", "dir", "source", "target")]
    texts = [path for path in values if isinstance(path, str) and protocol.index_of(path) is None]
    quoted = [path[:_LONGEST_QUOTE] for path in texts]
    paths = dict(zip(("path", "target"), quoted, strict=False))
    message = f"{' -> '.join(paths.values())}: {why}" if paths else why
    return protocol.refusal(request.ident, errno.errorcode[number], message, **paths, **details)


def _details(error: VfsdError) -> dict[str, Any]:
    if isinstance(error, StaleFile):
        return {"expected_mtime_ns": error.expected_mtime_ns, "actual_mtime_ns": error.actual_mtime_ns}
    return {}
