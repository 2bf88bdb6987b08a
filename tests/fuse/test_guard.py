"""The guard covers every request that pyfuse3 knows, and turns every failure into an errno."""

import errno
import inspect
from contextlib import suppress
from typing import Any

import pyfuse3
import pytest

from vfsd.errors import FsError, StoreFull, StoreUnreachable
from vfsd.fuse.guard import HANDLERS, Handler, install
from vfsd.fuse.operations import Operations
from vfsd.fuse.root_references import RootReferenceLayer


def test_every_request_of_pyfuse3_is_covered() -> None:
    defined = {name for name, member in vars(pyfuse3.Operations).items() if inspect.iscoroutinefunction(member)}
    assert set(HANDLERS) == defined
    assert {"lookup", "write", "forget", "setxattr", "statfs"} <= defined


@pytest.mark.parametrize("kind", [Operations, RootReferenceLayer])
def test_every_handler_answers_a_request_that_exists(kind: type) -> None:
    prefix = "on_" if kind is RootReferenceLayer else ""
    public = {name for name, member in vars(kind).items() if inspect.iscoroutinefunction(member) and name[0] != "_"}
    named = {name.removeprefix(prefix) for name in public if name.startswith(prefix)}
    assert named <= set(HANDLERS)
    assert named


class Raising:
    """A layer in which every request fails with *error*."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def around(self, name: str, handler: Handler) -> Handler:
        async def fail(*arguments: Any) -> Any:
            raise self._error

        return fail


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (FsError(errno.ENOTEMPTY), errno.ENOTEMPTY),
        (pyfuse3.FUSEError(errno.ENOSYS), errno.ENOSYS),
        (StoreFull("full"), errno.ENOSPC),
        (StoreUnreachable("away"), errno.EIO),
        (KeyError("a bug"), errno.EIO),
    ],
)
@pytest.mark.parametrize("name", [name for name in HANDLERS if name != "forget"])
async def test_an_error_reaches_the_caller_as_an_errno(name: str, error: Exception, number: int) -> None:
    operations = pyfuse3.Operations()
    install(operations, [Raising(error)])
    with pytest.raises(pyfuse3.FUSEError) as caught:
        await getattr(operations, name)()
    assert caught.value.errno == number


async def test_a_forget_lets_nothing_out(caplog: pytest.LogCaptureFixture) -> None:
    operations = pyfuse3.Operations()
    install(operations, [Raising(KeyError("a bug"))])
    await operations.forget([])
    assert "failed by a bug" in caplog.text


async def test_the_last_layer_is_asked_first() -> None:
    asked: list[str] = []

    class Noting:
        def __init__(self, label: str) -> None:
            self._label = label

        def around(self, name: str, handler: Handler) -> Handler:
            async def note(*arguments: Any) -> Any:
                asked.append(self._label)
                return await handler(*arguments)

            return note

    operations = pyfuse3.Operations()
    install(operations, [Noting("inner"), Noting("outer")])
    with pytest.raises(pyfuse3.FUSEError):
        await operations.lookup(pyfuse3.InodeT(1), pyfuse3.FileNameT(b"name"), None)  # type: ignore[arg-type]  # passed on only
    assert asked == ["outer", "inner"]


async def test_a_bug_logs_no_argument_of_the_request(caplog: pytest.LogCaptureFixture) -> None:
    """The argument of a write is content, and that of a lookup is a name."""
    operations = pyfuse3.Operations()
    install(operations, [Raising(KeyError("a bug"))])
    for name in HANDLERS:
        with suppress(pyfuse3.FUSEError):
            await getattr(operations, name)(b"secret", b"secret")
    assert len([record for record in caplog.records if "failed by a bug" in record.message]) == len(HANDLERS)
    assert "secret" not in caplog.text
