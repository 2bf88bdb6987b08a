"""The format of the control socket's lines: one JSON object a line. Requests and replies have an id.

Daemon and client both use it, so it loads neither trio nor a store. It knows the meaning of no operation. Its reference
is docs/control.md.
"""

import json
from typing import Any, NamedTuple, TypeAlias

VERSION = 1
LINE_MAX = 96 << 20
"""Longest line in bytes, in both directions. The daemon disconnects a client that sends a longer one."""

Ident: TypeAlias = str | int | None
"""The id of a request, which its reply repeats."""


class ControlRequest(NamedTuple):
    """A parsed request. *arguments* are its members except ``v``, ``id`` and ``op``."""

    ident: Ident
    op: str
    arguments: dict[str, Any]


class BadRequest(ValueError):
    """A line that is not a valid request of this version. *ident* is its id, or None if that could not be read."""

    def __init__(self, why: str, ident: Ident = None) -> None:
        super().__init__(why)
        self.ident = ident


def parse(line: bytes | bytearray) -> ControlRequest:
    """Return the request on *line*. Raises BadRequest."""
    try:
        message = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"not a line of JSON: {error}") from None
    if not isinstance(message, dict):
        raise BadRequest("a request is a JSON object")
    ident = message.pop("id", None)
    if not isinstance(ident, (str, int, type(None))):
        raise BadRequest("an 'id' is a string, an integer or null")
    if message.pop("v", VERSION) != VERSION:
        raise BadRequest(f"this daemon speaks version {VERSION}", ident)
    op = message.pop("op", None)
    if not isinstance(op, str):
        raise BadRequest("a request has a string 'op'", ident)
    return ControlRequest(ident, op, message)


def reply(ident: Ident, result: Any) -> bytes:
    """Return the reply with *result*, or a refusal (EMSGSIZE) if that is too long for a line."""
    line = _line({"id": ident, "ok": True, "result": result})
    if len(line) > LINE_MAX:
        why = f"the answer has {len(line)} bytes, more than {LINE_MAX} in a line; ask for less at once"
        return refusal(ident, "EMSGSIZE", why)
    return line


def refusal(ident: Ident, code: str, message: str, **details: Any) -> bytes:
    """Return the reply with an error. *details* are further members of the error."""
    return _line({"id": ident, "ok": False, "error": {"code": code, "message": message, **details}})


def request(ident: Ident, op: str, arguments: dict[str, Any]) -> bytes:
    """Return the line that requests *op*."""
    return _line({"v": VERSION, "id": ident, "op": op, **arguments})


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def path_text(path: bytes) -> str:
    """Return *path* as text. Bytes that are not UTF-8 become lone surrogates, in every locale."""
    return path.decode("utf-8", "surrogateescape")


def path_bytes(text: str) -> bytes:
    """Return the bytes of a path that :func:`path_text` made. Raises UnicodeEncodeError for other lone surrogates."""
    return text.encode("utf-8", "surrogateescape")
