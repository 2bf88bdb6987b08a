"""Standard input, output and error of a command that are closed, or cannot be written to.

A closed descriptor is dangerous: the next pipe or socket gets its number, and what a command prints goes there. So
:func:`prepare` comes first. It must never touch a descriptor that is open.
"""

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from vfsd.errors import UsageError, VfsdError

_OUTPUT, _ERROR = 1, 2


class OutputFailed(VfsdError):
    """What a command prints cannot be written, because a disk is full."""


def prepare() -> None:
    """Open ``/dev/null`` in place of each standard descriptor that is closed; let the output raise OutputFailed.

    ``sys.stdin`` stays None if it was closed, because to read nothing is not the same as to have no input.
    """
    for number in (0, _OUTPUT, _ERROR):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free: this one
    sys.stdout, sys.stderr = _output(sys.stdout, _OUTPUT), _output(sys.stderr, _ERROR)


def read_input() -> bytes:
    """Return everything on standard input. Raises UsageError if it is closed."""
    if sys.stdin is None:
        raise UsageError("standard input is closed: give the content there, as in '… < FILE'")
    return sys.stdin.buffer.read()


class _Output(io.TextIOWrapper):
    """Text output that raises OutputFailed. A pipe that nobody reads is still an OSError: click ends silently then."""

    def write(self, text: str, /) -> int:
        if text == "":  # click tries this, and hides what it raises
            return 0
        with self._failing():
            return super().write(text)

    def flush(self) -> None:
        with self._failing():
            super().flush()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            _drop(self.fileno())  # otherwise Python would try it again at its end
            raise OutputFailed(f"cannot write the output: {error.strerror}") from None


def _output(stream: TextIO | None, number: int) -> _Output:
    """Return the output to the descriptor *number*. *stream* is Python's own, or None if it was closed."""
    if not isinstance(stream, io.TextIOWrapper):
        return _Output(open(number, "wb", closefd=False))
    encoding, errors, lines, through = stream.encoding, stream.errors, stream.line_buffering, stream.write_through
    return _Output(stream.detach(), encoding, errors, line_buffering=lines, write_through=through)


def _drop(number: int) -> None:
    """Let what is written to the descriptor *number* go nowhere."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, number)
    os.close(nothing)
