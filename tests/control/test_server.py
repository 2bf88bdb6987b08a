"""The server alone, with handlers of the tests: errors, bugs, the final answer, and time limits of clients."""

import errno
import json
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from vfsd import Vfs
from vfsd.control.arguments import Arguments
from vfsd.control.lines import Line, LineReader
from vfsd.control.protocol import LINE_MAX
from vfsd.control.server import ControlHandler, FinalAnswer, listen, serve
from vfsd.errors import Fenced, FsError, ScopeBusy, StaleFile, StoreFull, StoreUnreachable, VfsdError


@asynccontextmanager
async def _serving(path: Path, handlers: Mapping[str, ControlHandler]) -> AsyncIterator[trio.SocketStream]:
    """Serve *handlers* at *path*, and yield the stream of a client."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, listen(path), handlers)
        async with await trio.open_unix_socket(path) as client:
            yield client
        nursery.cancel_scope.cancel()


async def _ask(client: trio.SocketStream, op: str) -> Any:
    await client.send_all(json.dumps({"op": op}).encode() + b"\n")
    line = await LineReader(client, LINE_MAX).next()
    assert line is not None
    assert line.text is not None
    return json.loads(line.text)


def _raising(error: Exception) -> ControlHandler:
    async def handler(arguments: Arguments) -> None:
        raise error

    return handler


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FsError(errno.ENOTEMPTY), "ENOTEMPTY"),
        (StoreUnreachable("away"), "EIO"),
        (StoreFull("full"), "ENOSPC"),
        (Fenced("fenced"), "EROFS"),
        (ScopeBusy("busy"), "EBUSY"),
        (VfsdError("something"), "EIO"),
    ],
)
async def test_an_error_is_answered_with_the_name_of_its_errno(tmp_path: Path, error: VfsdError, code: str) -> None:
    async with _serving(tmp_path / "socket", {"fail": _raising(error)}) as client:
        answer = await _ask(client, "fail")
    assert answer == {"id": None, "ok": False, "error": {"code": code, "message": str(error)}}


async def test_the_error_of_a_stale_file_has_both_times(tmp_path: Path) -> None:
    async with _serving(tmp_path / "socket", {"fail": _raising(StaleFile(5, None))}) as client:
        error = (await _ask(client, "fail"))["error"]
    assert (error["code"], error["expected_mtime_ns"], error["actual_mtime_ns"]) == ("ESTALE", 5, None)


async def test_a_bug_is_answered_and_logged_and_the_server_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def not_json(arguments: Arguments) -> object:
        return object()

    handlers = {"bug": _raising(ZeroDivisionError("a bug")), "not_json": not_json}
    async with _serving(tmp_path / "socket", handlers) as client:
        for op in handlers:
            answer = await _ask(client, op)
            assert answer["error"]["code"] == "EIO"
            assert "log has the traceback" in answer["error"]["message"]
    assert [record.exc_info is not None for record in caplog.records if record.levelname == "ERROR"] == [True, True]


async def test_an_answer_that_is_too_long_for_a_line(tmp_path: Path) -> None:
    async def endless(arguments: Arguments) -> str:
        return "x" * LINE_MAX

    async with _serving(tmp_path / "socket", {"endless": endless}) as client:
        assert (await _ask(client, "endless"))["error"]["code"] == "EMSGSIZE"


def _final(then: Callable[[], None]) -> ControlHandler:
    async def handler(arguments: Arguments) -> FinalAnswer:
        return FinalAnswer({}, then)

    return handler


async def test_after_the_final_answer_the_end_is_called(tmp_path: Path) -> None:
    ended = trio.Event()
    async with _serving(tmp_path / "socket", {"end": _final(ended.set)}) as client:
        assert (await _ask(client, "end"))["ok"]
        await ended.wait()


async def test_the_end_is_called_even_if_the_client_is_gone(tmp_path: Path) -> None:
    ended = trio.Event()
    async with _serving(tmp_path / "socket", {"end": _final(ended.set)}) as client:
        await client.send_all(b'{"op": "end"}\n')
        await client.aclose()
        await ended.wait()


def _pair() -> tuple[trio.SocketStream, trio.SocketStream]:
    """Return both ends of a connection: the server's and the client's."""
    server, client = socket.socketpair()
    return tuple(trio.SocketStream(trio.socket.from_stdlib_socket(end)) for end in (server, client))  # type: ignore[return-value]  # a generator of two


async def test_a_pause_in_the_middle_of_a_line_is_limited(autojump_clock: trio.testing.MockClock) -> None:
    server, client = _pair()
    async with server, client:
        await client.send_all(b"half a li")
        with pytest.raises(trio.TooSlowError):
            await LineReader(server, 100).next()


async def test_a_pause_between_lines_is_not_limited(autojump_clock: trio.testing.MockClock) -> None:
    server, client = _pair()
    async with server, client:
        lines = LineReader(server, 100)
        await client.send_all(b"one\n")
        assert await lines.next() == Line(b"one", [])
        with trio.move_on_after(86_400) as waiting:
            await lines.next()
        assert waiting.cancelled_caught
        await client.send_all(b"two\nthree\nfour")
        assert [await lines.next(), await lines.next()] == [Line(b"two", []), Line(b"three", [])]
        await client.send_eof()
        assert await lines.next() is None


@pytest.mark.parametrize(("length", "accepted"), [(99, True), (100, True), (101, False), (1000, False)])
async def test_a_line_has_a_longest_length(length: int, accepted: bool) -> None:
    server, client = _pair()
    async with server, client:
        await client.send_all(b"x" * length + b"\n")
        assert await LineReader(server, 100).next() == (Line(b"x" * length, []) if accepted else None)


async def test_the_client_sends_seeds_as_the_protocol_says(tmp_path: Path) -> None:
    received: list[tuple[str, Any]] = []

    async def seed_file(arguments: Arguments) -> dict[str, Any]:
        received.append((arguments.text("path"), arguments.data()))
        return {"path": arguments.text("path"), "changed": True}

    async def seed_skill(arguments: Arguments) -> dict[str, Any]:
        received.append((arguments.text("dir"), arguments.contents("files")))
        return {"dir": arguments.text("dir"), "name": "review", "changed": False}

    async def seed_list(arguments: Arguments) -> dict[str, Any]:
        skill = {"dir": "s", "name": "review", "description": "how", "files": ["SKILL.md"]}
        return {"skills": [skill], "seeds": [{"path": "s/SKILL.md", "state": "seeded"}]}

    async def seed_remove(arguments: Arguments) -> dict[str, Any]:
        return {"removed": 3}

    def use_client() -> None:
        with Vfs("/mountpoint", str(tmp_path / "socket"), 30) as vfs:
            assert vfs.seed_file("a.md", "text") is True
            assert vfs.seed_skill("s", "skill", {"b.md": b"b"}, files={"scripts/run": b"\xff"}) is False
            assert vfs.seed_list() == (
                [("s", "review", "how", ["SKILL.md"])],
                [("s/SKILL.md", "seeded")],
            )
            assert vfs.seed_remove("s") == 3

    handlers = {"seed_file": seed_file, "seed_skill": seed_skill, "seed_list": seed_list, "seed_remove": seed_remove}
    async with _serving(tmp_path / "socket", handlers):
        await trio.to_thread.run_sync(use_client)
    files = {b"SKILL.md": b"skill", b"references/b.md": b"b", b"scripts/run": b"\xff"}
    assert received == [("a.md", b"text"), ("s", files)]
