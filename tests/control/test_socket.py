"""The control socket of a real mount: whoever sends it nonsense costs himself only."""

import json
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer
from vfsd.control.protocol import LINE_MAX


@pytest.fixture
def mounted(mount: MountFactory, redis_server: RedisServer) -> Mounted:
    return mount(redis_server.url)


@contextmanager
def _client(mounted: Mounted) -> Iterator[socket.socket]:
    path = next((mounted.path.parent / "run").glob("*.sock"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(30)
        client.connect(str(path))
        yield client


def _answer(client: socket.socket, line: bytes) -> dict[str, object]:
    client.sendall(line + b"\n")
    answer: dict[str, object] = json.loads(client.makefile("rb").readline())
    return answer


def _still_answers(mounted: Mounted) -> None:
    with _client(mounted) as client:
        answer = _answer(client, b'{"v": 1, "id": "x", "op": "info"}')
    assert answer["id"] == "x"
    assert answer["ok"] is True
    assert json.loads(mounted.vfsd("status", "--json").stdout)


def test_the_socket_is_its_owners_alone(mounted: Mounted) -> None:
    path = next((mounted.path.parent / "run").glob("*.sock"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not list(mounted.path.iterdir())


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"", "EPROTO"),
        (b"\xff\x00nonsense", "EPROTO"),
        (b"[1, 2]", "EPROTO"),
        (b'{"id": 1}', "EPROTO"),
        (b'{"id": 1, "op": 7}', "EPROTO"),
        (b'{"v": 99, "id": 1, "op": "info"}', "EPROTO"),
        (b'{"id": 1, "op": "no such thing"}', "ENOSYS"),
    ],
)
def test_nonsense_is_answered_by_name(mounted: Mounted, line: bytes, code: str) -> None:
    with _client(mounted) as client:
        answer = _answer(client, line)
        assert answer["ok"] is False
        assert isinstance(answer["error"], dict)
        assert answer["error"]["code"] == code
    _still_answers(mounted)


def test_a_line_without_end_is_cut_off(mounted: Mounted) -> None:
    with _client(mounted) as client, pytest.raises((BrokenPipeError, ConnectionResetError)):
        _pour(client)
    _still_answers(mounted)


def _pour(client: socket.socket) -> None:
    while True:
        client.sendall(b"x" * (LINE_MAX // 4))


def test_one_who_says_nothing_keeps_nobody_waiting(mounted: Mounted) -> None:
    with _client(mounted) as silent:
        silent.sendall(b'{"op": "in')
        _still_answers(mounted)
