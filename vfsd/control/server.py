"""The daemon's end of the control socket. A broken or hostile client costs itself only: lengths and waits are bounded.

The socket is made with mode 0600, and the peer's uid is checked all the same. It never lies inside the mount. Requests
of one client are answered one after another, so what it sends ahead waits in the socket, not here.
"""

import errno
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import trio

from vfsd.control import protocol
from vfsd.control.arguments import Arguments
from vfsd.control.lines import LineReader
from vfsd.errors import StaleFile, VfsdError, errno_of

_log = logging.getLogger(__name__)


class FinalAnswer(NamedTuple):
    """An answer after which the daemon ends: *then* is called when the client has it, or has gone."""

    result: Any
    then: Callable[[], None]


ControlHandler: TypeAlias = Callable[[Arguments], Awaitable[Any]]
"""Answers one operation with something that JSON can carry, or with :class:`Last`. Raises VfsdError."""

_SEND_SECONDS = 60.0
"""Longest that a client may take for reading one answer."""

_ECHOED = 4096
"""Most characters of a path that come back in an error."""

_CREDENTIALS = struct.Struct("3i")
"""pid, uid, gid of the peer (:manpage:`unix(7)`, SO_PEERCRED)."""


def listen(path: Path) -> trio.SocketListener:
    """Return a listener at *path* for this user and root only, replacing what a dead daemon left there."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listening.bind(os.fspath(path))
    finally:
        os.umask(mask)
    listening.listen(16)
    return trio.SocketListener(trio.socket.from_stdlib_socket(listening))


async def serve(listener: trio.SocketListener, handlers: Mapping[str, ControlHandler]) -> None:
    """Answer requests on *listener* until cancelled."""

    async def serve_one(stream: trio.SocketStream) -> None:
        try:
            if _may_ask(stream):
                await _converse(stream, handlers)
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError) as error:
            _log.info("a control client went away: %s", error or type(error).__name__)
        except Exception:  # this client's trouble: it must not end the mount
            _log.exception("a control client met a bug")
        finally:
            await trio.aclose_forcefully(stream)

    await trio.serve_listeners(serve_one, [listener])


def _may_ask(stream: trio.SocketStream) -> bool:
    raw = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(raw)
    return uid in {0, os.geteuid()}


async def _converse(stream: trio.SocketStream, handlers: Mapping[str, ControlHandler]) -> None:
    lines = LineReader(stream, protocol.LINE_MAX)
    while (line := await lines.next()) is not None:
        answer, then = await _answer(line, handlers)
        del line  # it may be large, and the client may be slow
        try:
            with trio.fail_after(_SEND_SECONDS):
                await stream.send_all(answer)
        finally:
            if then is not None:
                then()


async def _answer(line: bytes, handlers: Mapping[str, ControlHandler]) -> tuple[bytes, Callable[[], None] | None]:
    """Return the line that answers *line*, and what is to be done after it."""
    try:
        request = protocol.parse(line)
    except protocol.BadRequest as error:
        return protocol.refusal(error.ident, "EPROTO", str(error)), None
    handler = handlers.get(request.op)
    if handler is None:
        return protocol.refusal(request.ident, "ENOSYS", f"this daemon knows no {request.op[:_ECHOED]!r}"), None
    try:
        result = await handler(Arguments(request.arguments))
        if isinstance(result, FinalAnswer):
            return protocol.reply(request.ident, result.result), result.then
        return protocol.reply(request.ident, result), None
    except VfsdError as error:
        return _refusal(request, errno_of(error), str(error), _details(error)), None
    except Exception:  # whatever a bug may raise
        _log.exception("%s failed by a bug; the client gets EIO", request.op)
        return _refusal(request, errno.EIO, "a bug in the daemon; its log has the traceback", {}), None


def _refusal(request: protocol.ControlRequest, number: int, why: str, details: dict[str, Any]) -> bytes:
    """Return the line that refuses *request*, with the paths that it is about."""
    given = [request.arguments.get(name) for name in ("path", "dir", "source", "target")]
    named = [path[:_ECHOED] for path in given if isinstance(path, str)]
    paths = dict(zip(("path", "target"), named, strict=False))
    message = f"{' -> '.join(paths.values())}: {why}" if paths else why
    return protocol.refusal(request.ident, errno.errorcode[number], message, **paths, **details)


def _details(error: VfsdError) -> dict[str, Any]:
    if isinstance(error, StaleFile):
        return {"expected_mtime_ns": error.expected_mtime_ns, "actual_mtime_ns": error.actual_mtime_ns}
    return {}
