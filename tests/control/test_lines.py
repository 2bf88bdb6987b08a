"""Lines of requests: content is taken out and decoded as it arrives, and what is parsed in one piece has a limit."""

import base64
import errno
import json
import os
import random
import socket
from collections.abc import Iterator

import pytest
import trio

from vfsd.control import protocol
from vfsd.control.arguments import Arguments
from vfsd.control.lines import Line, LineReader, Room, unlimited
from vfsd.control.protocol import LINE_MAX, MEMBERS_MAX, TEXT_MAX, BadRequest
from vfsd.errors import FsError

LONG = os.urandom(100_001)
LONG_BASE64 = base64.b64encode(LONG).decode()


async def _read(sent: bytes, room: Room = unlimited, pieces: Iterator[int] = iter(())) -> list[Line | None]:  # noqa: B008 (endless or empty)
    """Return the lines that a reader gets when *sent* arrives in *pieces* of these lengths."""
    server, client = (trio.SocketStream(trio.socket.from_stdlib_socket(end)) for end in socket.socketpair())
    lines: list[Line | None] = []

    async def send() -> None:
        rest = memoryview(sent)
        while rest:
            length = next(pieces, len(rest))
            await client.send_all(rest[:length])
            rest = rest[length:]
            if rest:  # let the reader see this piece by itself
                await trio.testing.wait_all_tasks_blocked()
        await client.send_eof()

    async with server, client, trio.open_nursery() as nursery:
        nursery.start_soon(send)
        reader = LineReader(server, LINE_MAX, room)
        while (line := await reader.next()) is not None:
            lines.append(line)
        nursery.cancel_scope.cancel()
    return lines


async def _only(sent: bytes, room: Room = unlimited) -> Line:
    (line,) = await _read(sent + b"\n", room)
    assert line is not None
    return line


def _arguments(line: Line) -> Arguments:
    return Arguments(protocol.parse(line.text).arguments, line.contents, line.no_room)


MESSAGES: list[dict[str, object]] = [
    {"op": "x", "data": LONG_BASE64},
    {"op": "x", "data": LONG_BASE64, "path": "a"},
    {"data": LONG_BASE64, "path": 'a"', "op": "\\", "more": [LONG_BASE64, {"data": LONG_BASE64}]},
    {"op": "x", "data": LONG_BASE64 + "\\", "path": '\\"'},
    {"op": "x", "data": LONG_BASE64 + '"' + LONG_BASE64},
    {"op": "x", "data": '"' + LONG_BASE64 + '"' + LONG_BASE64 + '\\"'},
    {"op": "x", "data": '\\"' + "A" * 20_000},
    {"op": "x", "data": "A" * 20_000 + "==="},
    {"op": "x", "data": "A" * 20_000 + "=" + "A" * 20_000},
    {"op": "x", "data": " " + LONG_BASE64},
    {"op": "x", "data": "A" * 8_191},
    {"op": "x", "data": "A" * 8_192},
    {"op": "x", LONG_BASE64: "key"},
    {"op": "x", "data": "é" * 10_000 + LONG_BASE64},
]


def _restored(value: object, line: Line) -> object:
    """Return *value* with the contents of *line* in the places from which they were taken."""
    if isinstance(value, dict):
        return {_restored(key, line): _restored(item, line) for key, item in value.items()}
    if isinstance(value, list):
        return [_restored(item, line) for item in value]
    index = protocol.index_of(value) if isinstance(value, str) else None
    if index is None:
        return value
    content = line.contents[index]
    return content if content is None else base64.b64encode(content).decode()


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("size", [1, 7, 8_191, 8_192, 65_536, 10_000_000])
async def test_whatever_the_pieces_a_line_means_the_same(size: int, ascii_only: bool) -> None:
    """Small pieces alternate with large ones."""
    sent = b"".join(json.dumps(message, ensure_ascii=ascii_only).encode() + b"\n" for message in MESSAGES)
    choices = random.Random(size)
    lengths = iter(lambda: choices.choice([size, 9_000, 70_000]), 0)
    lines = await _read(sent, pieces=lengths)
    assert len(lines) == len(MESSAGES)
    for line, message in zip(lines, MESSAGES, strict=True):
        assert line is not None
        assert line.text is not None
        assert _restored(json.loads(line.text), line) == message
        assert len(line.text) < len(json.dumps(message)) or not line.contents


async def test_content_is_taken_out_wherever_the_pieces_of_a_line_end() -> None:
    line = json.dumps({"op": "x", "data": base64.b64encode(LONG[:7_001]).decode(), "path": '"\\'}).encode() + b"\n"
    for cut in (*range(40), *range(8_180, 8_230), *range(len(line) - 40, len(line))):
        (read,) = await _read(line, pieces=iter([cut]) if cut else iter(()))
        assert read is not None
        assert read.contents == [LONG[:7_001]]
        assert _arguments(read).data() == LONG[:7_001]
        assert _arguments(read).text("path") == '"\\'


@pytest.mark.parametrize(
    "text", [LONG_BASE64[:-5], LONG_BASE64 + "=", "A" * 9_001, "=" + LONG_BASE64, LONG_BASE64 + "-"]
)
async def test_long_content_that_is_no_base64_is_refused(text: str) -> None:
    arguments = _arguments(await _only(json.dumps({"op": "x", "data": text}).encode()))
    with pytest.raises(FsError, match="must be base64 with padding"):
        arguments.data()


async def test_a_long_string_that_is_no_content_is_refused() -> None:
    line = await _only(json.dumps({"op": "x", "path": "A" * 10_000, "mode": "A" * 10_000}).encode())
    with pytest.raises(FsError) as caught:
        _arguments(line).path()
    assert caught.value.errno == errno.ENAMETOOLONG
    with pytest.raises(FsError, match="an integer"):
        _arguments(line).number("mode")
    with pytest.raises(BadRequest, match="at most 4096 characters"):
        protocol.parse((await _only(b'{"op": "x", "id": "' + b"A" * 10_000 + b'"}')).text)


@pytest.mark.parametrize("text", ["\0" + "0", "\0" + "7", "\0"])
async def test_text_that_looks_like_a_placeholder_does_no_harm(text: str) -> None:
    line = await _only(json.dumps({"op": "x", "path": text, "data": text}).encode())
    with pytest.raises(FsError, match="must be base64"):
        _arguments(line).data()
    assert _arguments(line).text("path") == text


@pytest.mark.parametrize(
    "value",
    [
        b"[" + b"[]," * 4_000_000 + b"1]",
        b"{" + b'"a":1,' * 2_000_000 + b'"a":1}',
        b'"' + b"-" * 9_000_000 + b'"',
        b'"' + b"\\u0041" * 2_000_000 + b'"',
        b'"' + b"A" * 12_000_000 + b'\\u0041"',
        b'"' + b'\\"AAAAAA' * 2_000_000 + b'"',
        b"[" + (b'"' + b"A" * 8_000 + b'",') * 2_000 + b"1]",
        b" " * 9_000_000 + b"1",
        b"9" * 9_000_000,
    ],
    ids=["lists", "members", "string", "escapes", "late escape", "quotes", "short strings", "spaces", "digits"],
)
async def test_a_request_with_too_much_besides_content_is_refused_unparsed(value: bytes) -> None:
    """The line after it is read as usual."""
    sent = b'{"op": "x", "data": "' + LONG_BASE64.encode() + b'", "more": ' + value + b"}"
    line, after = await _read(sent + b'\n{"op": "next"}\n')
    assert line is not None
    assert line.text is None
    with pytest.raises(BadRequest, match=f"more than {TEXT_MAX} bytes besides its content") as caught:
        protocol.parse(line.text)
    assert caught.value.code == "EMSGSIZE"
    assert after == Line(b'{"op": "next"}', [])


@pytest.mark.parametrize("value", [b"[],", b'{"a":{}},', b"1,", b"[[]],"])
async def test_a_request_with_too_many_members_is_refused_unparsed(
    value: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = await _only(b'{"op": "x", "more": [' + value * (MEMBERS_MAX + 1) + b"1]}")
    monkeypatch.delattr("json.loads")
    with pytest.raises(BadRequest, match=f"more than {MEMBERS_MAX} members") as caught:
        protocol.parse(line.text)
    assert caught.value.code == "EMSGSIZE"


async def test_content_for_which_memory_has_no_room_is_dropped_as_it_arrives() -> None:
    """The request is still understood, so its answer has its id."""
    asked: list[int] = []

    def room(size: int) -> None:
        asked.append(size)
        if size > 1 << 20:
            raise FsError(errno.ENOSPC, "no room")

    data = base64.b64encode(bytes(30 << 20)).decode()
    line = await _only(json.dumps({"id": 7, "op": "x", "first": LONG_BASE64, "data": data}).encode(), room)
    assert max(asked) < 2 << 20
    assert line.contents[0] is None
    assert sum(len(content or b"") for content in line.contents) < 1 << 20
    assert protocol.parse(line.text).ident == 7
    for name in ("first", "data"):
        with pytest.raises(FsError, match="no room") as caught:
            _arguments(line).data(name)
        assert caught.value.errno == errno.ENOSPC


async def test_other_tasks_run_while_a_long_line_is_read() -> None:
    """However long the line is, no step handles more than the reader receives at once."""
    steps = 0

    async def count() -> None:
        nonlocal steps
        while True:
            await trio.lowlevel.checkpoint()
            steps += 1

    content = bytes(48 << 20)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        line = await _only(json.dumps({"op": "x", "data": base64.b64encode(content).decode()}).encode())
        nursery.cancel_scope.cancel()
    assert line.contents == [content]
    assert steps > (64 << 20) // (1 << 18)
