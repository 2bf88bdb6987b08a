"""The tracer of ``--debug``: its paths follow renames, end when the kernel forgets, and a bug cannot end the mount."""

import errno
import logging
from typing import Any

import pyfuse3
import pytest

from vfsd.errors import FsError
from vfsd.fuse.guard import HANDLERS, Handler, install
from vfsd.fuse.trace import Tracer
from vfsd.tree.change import ROOT

EXCHANGE = 2
CONTEXT = "context"


class TracedRequests:
    """A tracer, and requests that succeed."""

    def __init__(self, log: pytest.LogCaptureFixture) -> None:
        log.set_level(logging.DEBUG, "vfsd.fuse.trace")
        self._log = log
        self._tracer = Tracer()

    async def request(self, name: str, *arguments: Any, reply: Any = None) -> str:
        """Let a request be answered by *reply*, and return its log line."""

        async def handler(*_arguments: Any) -> Any:
            return reply

        assert await self._tracer.around(name, handler)(*arguments) is reply
        return self._log.messages[-1]

    async def make(self, parent: int, name: bytes, ino: int) -> None:
        attributes = pyfuse3.EntryAttributes()
        attributes.st_ino = pyfuse3.InodeT(ino)
        await self.request("mkdir", parent, name, 0o755, CONTEXT, reply=attributes)

    async def rename(self, source: tuple[int, bytes], target: tuple[int, bytes], flags: int = 0) -> None:
        await self.request("rename", *source, *target, flags, CONTEXT)

    async def path(self, ino: int) -> str:
        """Return the path under which *ino* is logged."""
        return (await self.request("getattr", ino, CONTEXT)).split()[1]


@pytest.fixture
def scene(caplog: pytest.LogCaptureFixture) -> TracedRequests:
    return TracedRequests(caplog)


async def test_paths_follow_a_rename_of_a_directory_above(scene: TracedRequests) -> None:
    await scene.make(ROOT, b"a", 2)
    await scene.make(2, b"b", 3)
    await scene.make(3, b"c", 4)
    await scene.rename((2, b"b"), (ROOT, b"moved"))
    assert await scene.path(4) == "/moved/c"


async def test_directories_that_were_exchanged_make_no_circle(scene: TracedRequests) -> None:
    await scene.make(ROOT, b"a", 2)
    await scene.make(2, b"b", 3)
    await scene.rename((2, b"b"), (ROOT, b"b"))
    await scene.rename((ROOT, b"a"), (3, b"a"))
    assert await scene.path(3) == "/b"
    assert await scene.path(2) == "/b/a"


async def test_an_exchange_moves_both(scene: TracedRequests) -> None:
    await scene.make(ROOT, b"a", 2)
    await scene.make(ROOT, b"b", 3)
    await scene.rename((ROOT, b"a"), (ROOT, b"b"), EXCHANGE)
    assert [await scene.path(ino) for ino in (2, 3)] == ["/b", "/a"]


async def test_a_circle_of_names_seen_at_different_times_has_an_end(scene: TracedRequests) -> None:
    await scene.make(3, b"a", 2)
    await scene.make(2, b"b", 3)
    assert await scene.path(3) == "#3/a/b"


async def test_what_the_kernel_forgets_is_forgotten(scene: TracedRequests) -> None:
    await scene.make(ROOT, b"a", 2)
    await scene.request("opendir", 2, CONTEXT, reply=7)
    assert (await scene.request("readdir", 7, 0, "token")).startswith("readdir /a ")
    assert (await scene.request("releasedir", 7)).startswith("releasedir /a ")
    assert (await scene.request("readdir", 7, 0, "token")).startswith("readdir #0/ ")
    await scene.request("forget", [(2, 1)])
    assert await scene.path(2) == "#2/"


@pytest.mark.parametrize(
    ("error", "result"),
    [(ValueError("cannot handle b'secret'"), "ValueError"), (FsError(errno.ENOSPC), "No space left on device")],
)
async def test_a_failure_is_logged_without_the_text_of_a_bug(
    error: Exception, result: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "vfsd.fuse.trace")

    async def fail(*_arguments: Any) -> Any:
        raise error

    with pytest.raises(type(error)):
        await Tracer().around("write", fail)(1, 0, b"secret")
    assert f"-> {result} (" in caplog.text
    assert "secret" not in caplog.text


class Defective:
    """A layer with a bug."""

    def around(self, name: str, handler: Handler) -> Handler:
        async def fail(*arguments: Any) -> Any:
            raise LookupError(name)

        return fail


async def test_a_bug_in_a_layer_is_eio_for_the_caller_and_no_more(caplog: pytest.LogCaptureFixture) -> None:
    operations = pyfuse3.Operations()
    install(operations, [Defective()])
    for name in HANDLERS:
        if name == "forget":
            await getattr(operations, name)([])
            continue
        with pytest.raises(pyfuse3.FUSEError) as caught:
            await getattr(operations, name)()
        assert caught.value.errno == errno.EIO
    assert "failed by a bug" in caplog.text
