"""The guard around every handler: only a reply or a FUSEError may leave a handler towards pyfuse3.

Any other exception would end the mount for everyone, because pyfuse3 runs handlers in its own nursery. Failures of the
file system and of the store become their errno. A bug becomes EIO for that one caller, and a traceback in the log,
without the arguments of the request: they are names and content.
"""

import errno
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeAlias

import pyfuse3

from vfsd.errors import FsError, VfsdError, errno_of

_log = logging.getLogger(__name__)

Handler: TypeAlias = Callable[..., Awaitable[Any]]

HANDLERS = tuple(
    name
    for name, function in inspect.getmembers(pyfuse3.Operations, inspect.iscoroutinefunction)
    if not name.startswith("_")
)
"""Every request that pyfuse3 hands on, as its own class defines them."""


class Layer(Protocol):
    """Takes requests before the handlers do."""

    def around(self, name: str, handler: Handler) -> Handler:
        """Return what is called for the request *name* in place of *handler*, which it may call; or *handler*."""


def install(operations: pyfuse3.Operations, layers: Iterable[Layer]) -> None:
    """Put *layers* around every handler of *operations*, each around those before it, and the guard around all."""
    for name in HANDLERS:
        handler = getattr(operations, name)
        for layer in layers:
            handler = layer.around(name, handler)
        handler = _guarded(name, handler)
        setattr(operations, name, _silenced(name, handler) if name == "forget" else handler)


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
            _log.exception("%s failed by a bug; the caller gets EIO", name)
            raise pyfuse3.FUSEError(errno.EIO) from None

    return guarded


def _silenced(name: str, handler: Handler) -> Handler:
    """Let no error out at all: a forget has no reply that could carry one."""

    async def silenced(*arguments: Any) -> None:
        try:
            await handler(*arguments)
        except pyfuse3.FUSEError as error:
            _log.error("%s failed: %s", name, error)

    return silenced
