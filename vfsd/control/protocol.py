"""The format of the control socket's lines: one JSON object a line. Requests and replies have an id.

Daemon and client both use it, so it loads neither trio nor a store. It knows the meaning of no operation. Its reference
is docs/control.md.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

VERSION = 1
LINE_MAX = 96 << 20
"""Longest line in bytes, in both directions. The daemon disconnects a client that sends a longer one."""

TEXT_MAX = 8 << 20
"""Most bytes of a request besides its content (strings of base64 with 8,192 characters or more)."""

MEMBERS_MAX = 100_000
"""Most commas, brackets and braces in a request besides its content. Parsing takes as long as they are many."""

_ID_MAX = 4096

_TAKEN_OUT = "\0"
"""With a number, this stands for a string that was taken out of a line. No path has this character."""

Ident: TypeAlias = str | int | None
"""The id of a request, which its reply repeats."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value of an answer that is JSON already: *size* bytes in *parts*, each of which is made when it is sent."""

    size: int
    parts: Iterable[bytes]


class ControlRequest(NamedTuple):
    """A parsed request. *arguments* are its members except ``v``, ``id`` and ``op``."""

    ident: Ident
    op: str
    arguments: dict[str, Any]


class BadRequest(ValueError):
    """A line that is not a valid request of this version. *ident* is its id, or None if that could not be read.

    *code* is the name of the errno for it.
    """

    def __init__(self, why: str, ident: Ident = None, code: str = "EPROTO") -> None:
        super().__init__(why)
        self.ident = ident
        self.code = code


def placeholder(index: int) -> bytes:
    """Return what stands in the text of a line for the long string that was taken out of it as number *index*."""
    return f"\\u0000{index}".encode()


def index_of(text: str) -> int | None:
    """Return the number of the string that :func:`placeholder` put *text* in the place of, or None if it is text."""
    return int(text[1:]) if text.startswith(_TAKEN_OUT) and text[1:].isdecimal() else None


def parse(line: bytes | None) -> ControlRequest:
    """Return the request on *line*, the text of which is None if it was too long. Raises BadRequest."""
    if line is None:
        why = f"the request has more than {TEXT_MAX} bytes besides its content; ask for less at once"
        raise BadRequest(why, code="EMSGSIZE")
    if sum(map(line.count, (b",", b"[", b"{"))) > MEMBERS_MAX:
        raise BadRequest(f"the request has more than {MEMBERS_MAX} members; ask for less at once", code="EMSGSIZE")
    try:
        message = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"not a line of JSON: {error}") from None
    if not isinstance(message, dict):
        raise BadRequest("a request is a JSON object")
    ident = message.pop("id", None)
    if not isinstance(ident, (str, int, type(None))) or len(str(ident)) > _ID_MAX or index_of(str(ident)) is not None:
        raise BadRequest(f"an 'id' is a string of at most {_ID_MAX} characters, an integer or null")
    if message.pop("v", VERSION) != VERSION:
        raise BadRequest(f"this daemon speaks version {VERSION}", ident)
    op = message.pop("op", None)
    if not isinstance(op, str):
        raise BadRequest("a request has a string 'op'", ident)
    return ControlRequest(ident, op, message)


def reply(ident: Ident, result: Any) -> Iterator[bytes]:
    """Return the reply with *result* in parts, or a refusal (EMSGSIZE) if that is too long for a line.

    Values in *result* may be :class:`Encoded`.
    """
    encoded: list[Encoded] = []

    def encode(value: object) -> str:
        if not isinstance(value, Encoded):
            raise TypeError(f"{type(value).__name__} is not JSON")
        encoded.append(value)
        return _TAKEN_OUT

    line = _line({"id": ident, "ok": True, "result": result}, encode)
    size = len(line) + sum(value.size for value in encoded)
    if size > LINE_MAX:
        return iter((refusal(ident, "EMSGSIZE", f"{too_long(size)}; ask for less at once"),))
    return _in_parts(line, encoded)


def _in_parts(line: bytes, encoded: list[Encoded]) -> Iterator[bytes]:
    *texts, end = line.split(json.dumps(_TAKEN_OUT).encode()) if encoded else [line]
    for text, value in zip(texts, encoded, strict=True):
        yield text
        yield from value.parts
    yield end


def too_long(size: int) -> str:
    """Return why an answer of *size* bytes cannot be sent."""
    return f"the answer has {size} bytes, more than {LINE_MAX} in a line"


def refusal(ident: Ident, code: str, message: str, **details: Any) -> bytes:
    """Return the reply with an error. *details* are further members of the error."""
    return _line({"id": ident, "ok": False, "error": {"code": code, "message": message, **details}})


def request(ident: Ident, op: str, arguments: dict[str, Any]) -> bytes:
    """Return the line that requests *op*."""
    return _line({"v": VERSION, "id": ident, "op": op, **arguments})


def _line(message: dict[str, Any], encode: Callable[[Any], Any] | None = None) -> bytes:
    return json.dumps(message, default=encode).encode() + b"\n"


def path_text(path: bytes) -> str:
    """Return *path* as text. Bytes that are not UTF-8 become lone surrogates, in every locale."""
    return path.decode("utf-8", "surrogateescape")


def path_bytes(text: str) -> bytes:
    """Return the bytes of a path that :func:`path_text` made. Raises UnicodeEncodeError for other lone surrogates."""
    return text.encode("utf-8", "surrogateescape")
