"""Read lines from a stream. The time is linear in the length of a line, even if it comes in many small pieces."""

import trio

_RECEIVE_BYTES = 1 << 18
_SILENCE_SECONDS = 60.0
"""Longest time without data in the middle of a line. Between two lines there is no limit."""


class LineReader:
    """Reads lines of at most *longest* bytes from *stream*."""

    def __init__(self, stream: trio.SocketStream, longest: int) -> None:
        self._stream = stream
        self._longest = longest
        self._buffer = bytearray()
        self._searched = 0

    async def next(self) -> bytes | None:
        """Return the next line without its newline, or None at the end of the stream, or if the line is too long.

        Raises TooSlowError if nothing comes for 60 s in the middle of a line, BrokenResourceError if the stream fails.
        """
        while (end := self._buffer.find(b"\n", self._searched)) < 0:
            self._searched = len(self._buffer)
            if self._searched > self._longest:
                return None
            received = await self._receive()
            if not received:
                return None
            self._buffer += received
        if end > self._longest:
            return None
        line = bytes(memoryview(self._buffer)[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    async def _receive(self) -> bytes | bytearray:
        if not self._buffer:
            return await self._stream.receive_some(_RECEIVE_BYTES)
        with trio.fail_after(_SILENCE_SECONDS):
            return await self._stream.receive_some(_RECEIVE_BYTES)
