"""The log of a daemon: what it may contain.

No content of a file and no control character gets into it. A bug's exception may quote what it was handling, so only
its type and its traceback are logged, whoever logs it.
"""

import errno
import logging
import os
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import TypeAlias

from vfsd.config import MountConfig
from vfsd.daemon.log_file import LogFile
from vfsd.printable import printable

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LEVELS = (logging.INFO, logging.DEBUG)

_ExcInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def start_logging(config: MountConfig, log_file: str | None, *, take_streams: bool) -> None:
    """Log to *log_file*, or to stderr. With *take_streams* stdout and stderr of this process go to the file too."""
    handler: logging.Handler = logging.StreamHandler()
    if log_file is not None:
        handler = LogFile(log_file, config.log_max, take_streams=take_streams)
    handler.setFormatter(_Formatter(_FORMAT))
    logging.basicConfig(level=_LEVELS[min(config.verbosity, 1)], handlers=[handler])
    logging.getLogger("vfsd.fuse.trace").setLevel(logging.DEBUG if config.debug else logging.INFO)
    pyfuse3 = logging.getLogger("pyfuse3")
    pyfuse3.setLevel(logging.INFO)
    pyfuse3.addFilter(_tells_a_fault)


def _tells_a_fault(record: logging.LogRecord) -> bool:
    """Return False for pyfuse3's error about a reply that the kernel no longer awaits.

    An unmounted or aborted connection has dropped its requests, and the kernel answers their replies with ENOENT
    (fuse_dev_do_write in fs/fuse/dev.c). The last close of a file, for example, does not hold up an unmount.
    """
    return not ("fuse_reply" in str(record.msg) and record.args == (os.strerror(errno.ENOENT),))


class _Formatter(logging.Formatter):
    """Makes one line of each message. A record with ``lines`` (see ``extra`` of :mod:`logging`) may have several."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the library's name)
        several = getattr(record, "lines", False)
        parts = record.message.split("\n") if several else [record.message]
        record.message = "\n".join(map(printable, parts))
        return super().formatMessage(record)

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802 (the library's name)
        """Return where the exception was raised, and its type. Its text is left out: it may quote content."""
        return "" if ei[1] is None else "\n".join(_described(ei[1], set()))


def _described(error: BaseException, known: set[int]) -> Iterator[str]:
    """Yield the lines for *error*, for what it came from, and for the members of a group."""
    known.add(id(error))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and id(cause) not in known:
        yield from _described(cause, known)
        yield "which led to:"
    yield "Traceback (most recent call last):"
    yield "".join(traceback.format_tb(error.__traceback__)).rstrip("\n")
    yield f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    for member in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield from ("  | " + line for block in _described(member, known) for line in block.split("\n"))
