"""The one guard around every handler: what may leave it towards pyfuse3 is a reply or a FUSEError.

Any other exception would end the mount for everyone (pyfuse3 runs handlers in its own nursery). Failures of the
file system and the store become their errno; a bug becomes EIO for that one caller, and a traceback in the log.
"""

import errno
import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

import pyfuse3

from vfsd.errors import FsError, VfsdError, errno_of

_log = logging.getLogger(__name__)

Handler: TypeAlias = Callable[..., Awaitable[Any]]

HANDLERS = (
    "access",
    "create",
    "flush",
    "forget",
    "fsync",
    "fsyncdir",
    "getattr",
    "getxattr",
    "link",
    "listxattr",
    "lookup",
    "mkdir",
    "mknod",
    "open",
    "opendir",
    "read",
    "readdir",
    "readlink",
    "release",
    "releasedir",
    "removexattr",
    "rename",
    "rmdir",
    "setattr",
    "setxattr",
    "statfs",
    "symlink",
    "unlink",
    "write",
)
"""Every request that pyfuse3 hands on."""


class Observer(Protocol):
    """Is told of each request, for ``--debug``."""

    async def observe(self, name: str, handler: Handler, arguments: tuple[Any, ...]) -> Any:
        """Call *handler* with *arguments*, and tell of it."""


def install(operations: pyfuse3.Operations, observer: Observer | None) -> None:
    """Put *observer*, if any, around every handler of *operations*, and the guard around both."""
    for name in HANDLERS:
        handler = getattr(operations, name)
        if observer is not None:
            handler = _observed(name, handler, observer)
        handler = _guarded(name, handler)
        setattr(operations, name, _last_line(name, handler) if name == "forget" else handler)


def _guarded(name: str, handler: Handler) -> Handler:
    @functools.wraps(handler)
    async def guarded(*arguments: Any) -> Any:
        try:
            return await handler(*arguments)
        except pyfuse3.FUSEError:
            raise
        except FsError as error:
            raise pyfuse3.FUSEError(error.errno) from None
        except VfsdError as error:
            _log.debug("%s: %s", name, error)
            raise pyfuse3.FUSEError(errno_of(error)) from None
        except Exception:  # whatever a bug may raise: it must not end the mount
            _log.exception("%s%r failed by a bug; the caller gets EIO", name, arguments)
            raise pyfuse3.FUSEError(errno.EIO) from None

    return guarded


def _observed(name: str, handler: Handler, observer: Observer) -> Handler:
    @functools.wraps(handler)
    async def observed(*arguments: Any) -> Any:
        return await observer.observe(name, handler, arguments)

    return observed


def _last_line(name: str, handler: Handler) -> Handler:
    """Let nothing at all out: a forget has no reply that could carry an error."""

    async def silent(*arguments: Any) -> None:
        try:
            await handler(*arguments)
        except pyfuse3.FUSEError as error:
            _log.error("%s%r failed: %s", name, arguments, error)

    return silent
