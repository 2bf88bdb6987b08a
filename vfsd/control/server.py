"""The daemon's end of the control socket. A broken or hostile client costs itself only: lengths and waits are bounded.

The socket is made with mode 0600, and the peer's uid is checked all the same. It never lies inside the mount.
"""

import errno
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import trio

from vfsd.control import protocol
from vfsd.errors import VfsdError, errno_of

_log = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[dict[str, Any]], Awaitable[Any]]
"""Answers one operation with something that JSON can carry. Raises VfsdError."""

_IDLE_SECONDS = 60.0
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


async def serve(listener: trio.SocketListener, handlers: Mapping[str, Handler]) -> None:
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


async def _converse(stream: trio.SocketStream, handlers: Mapping[str, Handler]) -> None:
    buffered = b""
    while True:
        with trio.fail_after(_IDLE_SECONDS):
            received = await stream.receive_some()
        if not received or len(buffered) + len(received) > protocol.LINE_MAX:
            return
        *lines, buffered = (buffered + received).split(b"\n")
        for line in lines:
            with trio.fail_after(_IDLE_SECONDS):
                await stream.send_all(await _answer(line, handlers))


async def _answer(line: bytes, handlers: Mapping[str, Handler]) -> bytes:
    try:
        request = protocol.parse(line)
    except protocol.BadRequest as error:
        return protocol.refusal(None, "EPROTO", str(error))
    handler = handlers.get(request.op)
    if handler is None:
        return protocol.refusal(request.ident, "ENOSYS", f"this daemon knows no {request.op!r}")
    try:
        return protocol.reply(request.ident, await handler(request.arguments))
    except VfsdError as error:
        return protocol.refusal(request.ident, errno.errorcode[errno_of(error)], str(error))
