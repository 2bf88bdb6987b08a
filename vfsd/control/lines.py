"""Read lines of JSON from a stream, without ever keeping the event loop busy for long.

A line may have 96 MiB, and nearly all of it is content: one or more long strings of base64. They are taken out of the
line and decoded as they arrive. What is left, the *text*, is short, so parsing it is quick. The time is linear in the
length of a line, even if it comes in many small pieces.
"""

import binascii
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import trio

from vfsd.control.protocol import TEXT_MAX, placeholder
from vfsd.errors import FsError

_RECEIVE_BYTES = 1 << 18
_SILENCE_SECONDS = 60.0
"""Longest time without data in the middle of a line. Between two lines there is no limit."""

_LONG = 8192
"""Fewest characters of base64 that are taken out of a line. No path is so long, so only content is taken out."""
_OPENING = re.compile(rb'"[A-Za-z0-9+/]{%d}' % _LONG)
_RUN = re.compile(rb"[A-Za-z0-9+/]*")
_CLOSING = re.compile(rb'(={0,2})"')
_JOIN_IN_A_THREAD = 1 << 20
"""Joining more bytes than this releases the interpreter's lock, so a thread does it."""

Room: TypeAlias = Callable[[int], None]
"""Raises FsError (ENOSPC) if memory has no room for so many bytes more."""


def unlimited(size: int) -> None:
    """Accept any number of bytes: a :data:`Room` without a limit."""


class Line(NamedTuple):
    """One line. *text* is None if it was too long.

    *contents* are the long strings that were taken out of the text, decoded; None for one that is no base64.
    *no_room* is why contents were dropped.
    """

    text: bytes | None
    contents: Sequence[bytes | None] = ()
    no_room: FsError | None = None


class _Content:
    """One long string of base64, decoded as it arrives."""

    def __init__(self) -> None:
        self.size = 0
        self._decoded: list[bytes] = []
        self._rest = b""

    def add(self, run: bytes) -> int:
        """Add *run*, and return how many bytes it has become."""
        run = self._rest + run
        whole = len(run) - len(run) % 4
        self._rest = run[whole:]
        piece = binascii.a2b_base64(run[:whole])
        self._decoded.append(piece)
        self.size += len(piece)
        return len(piece)

    def raw(self) -> bytes:
        """Return what was added, as it was."""
        return b64encode(b"".join(self._decoded)) + self._rest

    def drop(self) -> None:
        """Keep nothing of it."""
        self._decoded.clear()

    async def close(self, padding: bytes) -> bytes | None:
        """Return all of it, or None if it is no base64."""
        try:
            self._decoded.append(binascii.a2b_base64(self._rest + padding, strict_mode=True))
        except binascii.Error:
            return None
        if self.size < _JOIN_IN_A_THREAD:
            return b"".join(self._decoded)
        return await trio.to_thread.run_sync(b"".join, self._decoded)


class LineReader:
    """Reads lines of at most *longest* bytes from *stream*. *room* limits the memory for their contents."""

    def __init__(self, stream: trio.SocketStream, longest: int, room: Room = unlimited) -> None:
        self._stream = stream
        self._longest = longest
        self._room = room
        self._buffer = bytearray()
        """What was received and not yet looked at."""
        self._start()

    def _start(self) -> None:
        """Begin a line."""
        self._length = 0
        self._held = 0
        self._text = bytearray()
        self._contents: list[bytes | None] = []
        self._content: _Content | None = None
        self._no_room: FsError | None = None
        self._is_too_long = False

    async def next(self) -> Line | None:
        """Return the next line without its newline, or None at the end of the stream, or if the line is too long.

        Raises TooSlowError if nothing comes for 60 s in the middle of a line, BrokenResourceError if the stream fails.
        """
        while not await self._is_complete():
            if self._length + len(self._buffer) > self._longest:
                return None
            received = await self._receive()
            if not received:
                return None
            self._buffer += received
        if self._length > self._longest + 1:  # with its newline
            return None
        line = Line(None if self._is_too_long else bytes(self._text), self._contents, self._no_room)
        self._start()
        return line

    async def _receive(self) -> bytes | bytearray:
        if not self._buffer and not self._length:
            return await self._stream.receive_some(_RECEIVE_BYTES)
        with trio.fail_after(_SILENCE_SECONDS):
            return await self._stream.receive_some(_RECEIVE_BYTES)

    async def _is_complete(self) -> bool:
        """Look at what was received. Return whether the line has ended; its newline is taken too."""
        while True:
            if self._content is not None:
                if not await self._read_content(self._content):
                    return False
            elif not self._read_text():
                return self._ends()

    def _read_text(self) -> bool:
        """Take text up to the next content, and return whether there is one."""
        end = self._buffer.find(b"\n")
        if end < 0:
            end = len(self._buffer)
        opening = self._opening(end)
        if opening < 0:
            whole = end < len(self._buffer)
            self._take_text(end if whole else max(0, end - _LONG - 1))
            return False
        self._take_text(opening + 1)
        self._content = _Content()
        return True

    def _opening(self, end: int) -> int:
        """Return where a long string begins before *end*, or -1. An escaped quotation mark does not begin a string.

        In valid JSON nothing in the alphabet of base64 follows the quotation mark that ends a string.
        """
        start = 0
        while (found := _OPENING.search(self._buffer, start, end)) is not None:
            before = self._buffer[found.start() - 1 : found.start()] if found.start() else self._text[-1:]
            if before != b"\\":
                return found.start()
            start = found.end()
        return -1

    def _ends(self) -> bool:
        """Return whether the line has ended, and take its newline."""
        if not self._buffer.startswith(b"\n"):
            return False
        self._take(1)
        return True

    def _take(self, count: int) -> bytes:
        """Take the next *count* bytes."""
        taken = bytes(memoryview(self._buffer)[:count])
        del self._buffer[:count]
        self._length += count
        return taken

    def _take_text(self, count: int) -> None:
        self._add_text(self._take(count))

    def _add_text(self, text: bytes) -> None:
        if len(self._text) + len(text) > TEXT_MAX:
            self._is_too_long = True
        if self._is_too_long:
            self._text[:] = text[-1:]
        else:
            self._text += text

    async def _read_content(self, content: _Content) -> bool:
        """Take what has come of *content*, and return whether it has ended."""
        run = _RUN.match(self._buffer)
        assert run is not None, "it may be empty"
        self._hold(content, content.add(self._take(run.end())))
        closing = _CLOSING.match(self._buffer)
        if closing is not None:
            padding = closing[1]
            self._take(len(padding))
            self._contents.append(await content.close(padding))
            self._add_text(placeholder(len(self._contents) - 1))
        elif bytes(self._buffer) in {b"", b"=", b"=="}:
            return False
        else:  # it goes on with something else, so it is text
            self._is_too_long |= content.size > TEXT_MAX
            self._add_text(b"" if self._is_too_long else content.raw())
        self._content = None
        return True

    def _hold(self, content: _Content, size: int) -> None:
        """Count *size* bytes more, and keep no content if memory has no room for all of it."""
        self._held += size
        if self._no_room is None:
            try:
                self._room(self._held)
            except FsError as error:
                self._no_room = error
                self._contents = [None] * len(self._contents)
        if self._no_room is not None:
            content.drop()
