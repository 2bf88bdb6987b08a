"""One JSON object a line, requests and replies with an id. Shared by both ends; imports neither trio nor a store.

docs/control.md is its reference. Nothing here knows what an operation means.
"""

import json
from typing import Any, NamedTuple, TypeAlias

VERSION = 1
LINE_MAX = 96 << 20
"""Longest line in bytes, either way; whoever sends more is cut off."""

Ident: TypeAlias = str | int | None
"""What a client may number its requests with."""


class ControlRequest(NamedTuple):
    """A parsed request; *arguments* are its further members."""

    ident: Ident
    op: str
    arguments: dict[str, Any]


class BadRequest(ValueError):
    """A line that is no request this version understands; *ident* is its id, as far as that could be read."""

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
    """Return the line that answers a request with *result*, or says that it is too long for a line."""
    line = _line({"id": ident, "ok": True, "result": result})
    if len(line) > LINE_MAX:
        why = f"the answer has {len(line)} bytes, more than {LINE_MAX} in a line; ask for less at once"
        return refusal(ident, "EMSGSIZE", why)
    return line


def refusal(ident: Ident, code: str, message: str, **details: Any) -> bytes:
    """Return the line that answers a request with an error, of which *details* say more."""
    return _line({"id": ident, "ok": False, "error": {"code": code, "message": message, **details}})


def request(ident: Ident, op: str, arguments: dict[str, Any]) -> bytes:
    """Return the line that asks for *op*."""
    return _line({"v": VERSION, "id": ident, "op": op, **arguments})


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def path_text(path: bytes) -> str:
    """Return *path* as it goes over the wire: bytes that are no UTF-8 as lone surrogates, whatever the locale."""
    return path.decode("utf-8", "surrogateescape")


def path_bytes(text: str) -> bytes:
    """Undo :func:`path_text`. Raises UnicodeEncodeError for what stands for no bytes."""
    return text.encode("utf-8", "surrogateescape")
