"""The path of one request through the code: function calls, files, moves from file to file.

Counted, not timed. A handler of :class:`vfsd.fuse.operations.Operations` is called as pyfuse3 calls it, over a real
store and without a mount. ``sys.setprofile`` sees every call of a Python function of vfsd until the handler replies. A
generator counts each time it is resumed.
"""

import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pyfuse3
import trio

import vfsd
from bench.factory import redis_server
from bench.process import BenchError
from bench.report import markdown
from vfsd.fuse.kernel_cache import FuseKernelCache
from vfsd.fuse.operations import Operations
from vfsd.fuse.replies import Replies
from vfsd.scope.background import BackgroundTasks
from vfsd.scope.volume import Backing
from vfsd.seeds.seeded_volume import seeded_volume
from vfsd.store.base import ClaimTerms, StoreOptions
from vfsd.store.owner import this_process
from vfsd.store.url import open_store
from vfsd.tree.change import ROOT
from vfsd.tree.tree import Tree

_PACKAGE = f"{Path(vfsd.__file__).parent}{os.sep}"
_WARM_UPS = 3
"""Requests before the one that is counted: the first one may fill caches."""
_DATA = b"x" * 100

Request = Callable[[], Awaitable[object]]


class Caller(NamedTuple):
    """Who makes a request, as :class:`pyfuse3.RequestContext` says it."""

    uid: int = 0
    gid: int = 0
    pid: int = 1
    umask: int = 0o022


class Calls(NamedTuple):
    """The functions called, in order, as file and name."""

    functions: list[tuple[str, str]]

    @property
    def files(self) -> Counter[str]:
        """Calls by file."""
        return Counter(file for file, _ in self.functions)

    @property
    def moves(self) -> int:
        """How often a call lies in another file than the call before it."""
        return sum(here[0] != there[0] for here, there in zip(self.functions, self.functions[1:], strict=False))


@contextmanager
def _profiled() -> Iterator[Calls]:
    calls = Calls([])

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(_PACKAGE):
            calls.functions.append((file.removeprefix(_PACKAGE), frame.f_code.co_qualname))

    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(None)


async def _count(request: Request) -> Calls:
    for _ in range(_WARM_UPS):
        await request()
    with _profiled() as calls:
        await request()
    return calls


class _Requests:
    """The requests that are counted, by name."""

    def __init__(self, operations: Operations, fh: pyfuse3.FileHandleT, ino: pyfuse3.InodeT) -> None:
        self._operations = operations
        self._fh = fh
        self._ino = ino
        self._written = 0
        self._made = 0
        self._caller: Any = Caller()

    async def lookup(self) -> None:
        await self._operations.lookup(pyfuse3.InodeT(ROOT), pyfuse3.FileNameT(b"file"), self._caller)

    async def getattr(self) -> None:
        await self._operations.getattr(self._ino, self._caller)

    async def read(self) -> None:
        await self._operations.read(self._fh, 0, len(_DATA))

    async def write(self) -> None:
        await self._operations.write(self._fh, self._written, _DATA)
        self._written += len(_DATA)

    async def create(self) -> None:
        self._made += 1
        name = pyfuse3.FileNameT(b"new-%d" % self._made)
        mode, flags = pyfuse3.ModeT(0o644), pyfuse3.FlagT(os.O_RDWR)
        await self._operations.create(pyfuse3.InodeT(ROOT), name, mode, flags, self._caller)

    async def unlink(self) -> None:
        name = pyfuse3.FileNameT(b"new-%d" % self._made)
        self._made -= 1
        await self._operations.unlink(pyfuse3.InodeT(ROOT), name, self._caller)

    def by_name(self) -> dict[str, Request]:
        """Return the requests, in the order in which they must be made."""
        return {
            "write 100 bytes": self.write,
            "create": self.create,
            "unlink": self.unlink,
            "lookup": self.lookup,
            "getattr": self.getattr,
            "read 100 bytes": self.read,
        }


async def count_calls(store_url: str) -> dict[str, Calls]:
    """Return the calls of each request, on a new scope of the store that *store_url* names.

    The scope has the hooks of a default mount. There are no layers around the handlers.
    """
    store = open_store(store_url, StoreOptions())
    try:
        claim = await store.claim("calls", this_process("/nowhere"), ClaimTerms())
        async with trio.open_nursery() as nursery:
            tree, background = Tree(), BackgroundTasks(nursery)
            seeded, kernel = seeded_volume(tree, Backing(store, claim), background), FuseKernelCache(tree, background)
            await seeded.volume.make_root(0, 0)
            operations, caller = Operations(seeded.volume, Replies(None), kernel, xattrs=False), Caller()
            name, mode, flags = pyfuse3.FileNameT(b"file"), pyfuse3.ModeT(0o644), pyfuse3.FlagT(os.O_RDWR)
            info, entry = await operations.create(pyfuse3.InodeT(ROOT), name, mode, flags, caller)  # type: ignore[arg-type]  # pyfuse3's class cannot be made here
            requests = _Requests(operations, info.fh, entry.st_ino)
            counted = {name: await _count(request) for name, request in requests.by_name().items()}
            nursery.cancel_scope.cancel()
        await claim.release()
        return counted
    finally:
        await store.aclose()


def _row(name: str, store: str, calls: Calls) -> list[str]:
    return [name, store, str(len(calls.functions)), str(len(calls.files)), str(calls.moves)]


def table(base: Path) -> str:
    """Return how long the way of each request is, on Redis and on SQLite, as Markdown."""
    with redis_server() as server:
        by_store = {
            "Redis": trio.run(count_calls, server.url),
            "SQLite": trio.run(count_calls, f"sqlite:{base}/calls.db"),
        }
    rows = [
        _row(name, store, calls)
        for name in by_store["Redis"]
        for store, counted in by_store.items()
        if (calls := counted[name]) and not (store == "SQLite" and name in {"lookup", "getattr", "read 100 bytes"})
    ]
    return markdown(["request", "store", "calls", "files", "moves between files"], rows)


def listing(request: str) -> str:
    """Return the functions that *request* calls on Redis, one a line. Raises BenchError for an unknown request."""
    with redis_server() as server:
        counted = trio.run(count_calls, server.url)
    if request not in counted:
        raise BenchError(f"{request!r} is none of the requests {', '.join(counted)}")
    return "\n".join(f"{file:36}{function}" for file, function in counted[request].functions)
