"""One JSON object a line, requests and replies with an id. Shared by both ends; imports neither trio nor a store.

Request ``{"v": 1, "id": 7, "op": "info"}``; reply ``{"id": 7, "ok": true, "result": {…}}`` or
``{"id": 7, "ok": false, "error": {"code": "ENOENT", "message": "…"}}``.
"""

import json
from typing import Any, NamedTuple

VERSION = 1
LINE_MAX = 1 << 20
"""Longest line in bytes; whoever sends more is cut off."""


class Request(NamedTuple):
    """A parsed request; *arguments* are its further members."""

    ident: Any
    op: str
    arguments: dict[str, Any]


class BadRequest(ValueError):
    """A line that is no request this version understands."""


def parse(line: bytes) -> Request:
    """Return the request on *line*. Raises BadRequest."""
    try:
        message = json.loads(line)
    except ValueError as error:
        raise BadRequest(f"not a JSON object: {error}") from None
    if not isinstance(message, dict) or not isinstance(message.get("op"), str):
        raise BadRequest("a request is an object with a string 'op'")
    if message.pop("v", VERSION) != VERSION:
        raise BadRequest(f"this daemon speaks version {VERSION}")
    return Request(message.pop("id", None), message.pop("op"), message)


def reply(ident: Any, result: Any) -> bytes:
    """Return the line that answers a request with *result*."""
    return json.dumps({"id": ident, "ok": True, "result": result}).encode() + b"\n"


def refusal(ident: Any, code: str, message: str) -> bytes:
    """Return the line that answers a request with an error."""
    return json.dumps({"id": ident, "ok": False, "error": {"code": code, "message": message}}).encode() + b"\n"
