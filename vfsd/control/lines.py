"""Lines out of a stream, in time that grows with their length only, whatever the pieces in which they come."""

import trio

_PIECE = 1 << 18
_SILENCE_SECONDS = 60.0
"""Longest that a client may say nothing in the middle of a line. Between two lines it may take its time."""


class LineReader:
    """The lines that come over *stream*, each of at most *longest* bytes."""

    def __init__(self, stream: trio.SocketStream, longest: int) -> None:
        self._stream = stream
        self._longest = longest
        self._buffer = bytearray()
        self._searched = 0

    async def next(self) -> bytes | None:
        """Return the next line without its end, or None at the end of the stream or if the line is too long.

        Raises TooSlowError in the middle of a line, BrokenResourceError.
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
            return await self._stream.receive_some(_PIECE)
        with trio.fail_after(_SILENCE_SECONDS):
            return await self._stream.receive_some(_PIECE)
