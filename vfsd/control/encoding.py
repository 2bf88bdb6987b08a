"""Large values of answers as JSON, made a piece at a time: the mount waits while a piece is made."""

import errno
import json
import time
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import trio

from vfsd.control.lines import Room
from vfsd.control.protocol import LINE_MAX, Encoded
from vfsd.errors import FsError
from vfsd.files.read import Content

_ENTRIES_AT_ONCE = 256
_LONG_SECONDS = 0.001
"""Time after which others must run, where a value says that time has passed."""
_BYTES_AT_ONCE = 3 << 18
"""A multiple of 3: base64 makes four characters of three bytes, so the pieces fit together."""


def encoded_content(content: Content) -> Encoded:
    """Return *content* as a string of base64."""
    return Encoded((content.length + 2) // 3 * 4 + 2, _quoted(content))


def _quoted(content: Content) -> Iterator[bytes]:
    yield b'"'
    for piece in content.pieces(_BYTES_AT_ONCE):
        yield b64encode(piece)
    yield b'"'


async def encoded_list(values: Iterator[Any], room: Room) -> Encoded:
    """Return *values* as a list. Other tasks run while it is made. None is no value: it says that time has passed.

    Errors: EMSGSIZE (too long for a line), ENOSPC (*room* refuses it).
    """
    parts, size = [b"["], 2
    for batch in _batches(values):
        if batch:
            text = json.dumps(batch)[1:-1].encode()
            parts.append(text if len(parts) == 1 else b", " + text)
            size += len(parts[-1])
            _check_size(size, room)
        await trio.lowlevel.checkpoint()
    return Encoded(size, (*parts, b"]"))


def _batches(values: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield *values* in lists, each of which takes only a few milliseconds."""
    batch: list[Any] = []
    passed, end = 0, time.perf_counter() + _LONG_SECONDS
    for value in values:
        passed += 1
        if value is not None:
            batch.append(value)
        if passed == _ENTRIES_AT_ONCE or (value is None and time.perf_counter() > end):
            yield batch
            batch = []
            passed, end = 0, time.perf_counter() + _LONG_SECONDS
    yield batch


def _check_size(size: int, room: Room) -> None:
    if size > LINE_MAX:
        raise FsError(errno.EMSGSIZE, f"the answer has more than {LINE_MAX} bytes in a line; ask for less at once")
    room(size)
