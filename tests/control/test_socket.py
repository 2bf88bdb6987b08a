"""The control socket of a real mount: a bad client harms only itself."""

import base64
import json
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.support.files import unprivileged
from tests.support.mounted import Mounted, wait_until
from vfsd.control.protocol import LINE_MAX


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


def _assert_answers(mounted: Mounted) -> None:
    with _client(mounted) as client:
        answer = _answer(client, b'{"v": 1, "id": "x", "op": "info"}')
    assert answer["id"] == "x"
    assert answer["ok"] is True
    assert json.loads(mounted.vfsd("status", "--json").stdout)


def test_only_the_owner_may_open_the_socket(mounted: Mounted) -> None:
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
        (b'{"id": [1], "op": "info"}', "EPROTO"),
        (b'{"id": 1.5, "op": "info"}', "EPROTO"),
        (b'{"op": "info", "id": ' + b"9" * 5000 + b"}", "EPROTO"),
        (b"[" * 100_000, "EPROTO"),
        (b"[" * 100_001, "EMSGSIZE"),
        (b'{"id": 1, "op": "info", "more": "' + b"-" * (9 << 20) + b'"}', "EMSGSIZE"),
        (b'{"op": "write_file", "path": "a", "data": "' + b"A" * 100_001 + b'"}', "EINVAL"),
        (b'{"op": "stat", "path": "\\ud800"}', "EINVAL"),
        (b'{"op": "stat", "path": "a\\u0000b"}', "EINVAL"),
        (b'{"op": "stat"}', "EINVAL"),
        (b'{"op": "stat", "path": null}', "EINVAL"),
        (b'{"op": "stat", "path": 7}', "EINVAL"),
        (b'{"op": "read_file", "path": "a", "offset": -1}', "EINVAL"),
        (b'{"op": "read_file", "path": "a", "offset": true}', "EINVAL"),
        (b'{"op": "read_file", "path": "a", "length": 1e3}', "EINVAL"),
        (b'{"op": "read_file", "path": "a", "length": 99999999999999999999}', "EINVAL"),
        (b'{"op": "write_file", "path": "a", "data": "not base64"}', "EINVAL"),
        (b'{"op": "write_file", "path": "a", "data": "aGVsbG8"}', "EINVAL"),
        (b'{"op": "write_file", "path": "a", "data": "", "mode": 65536}', "EINVAL"),
        (b'{"op": "write_file", "path": "a", "data": "", "parents": "yes"}', "EINVAL"),
        (b'{"op": "move_file", "source": "a", "target": []}', "EINVAL"),
        (b'{"id": 1, "op": "no such thing"}', "ENOSYS"),
    ],
)
def test_a_bad_request_is_answered_with_an_error(mounted: Mounted, line: bytes, code: str) -> None:
    with _client(mounted) as client:
        answer = _answer(client, line)
        assert answer["ok"] is False
        assert isinstance(answer["error"], dict)
        assert answer["error"]["code"] == code
    _assert_answers(mounted)


def test_a_client_that_sends_an_endless_line_is_disconnected(mounted: Mounted) -> None:
    with _client(mounted) as client, pytest.raises((BrokenPipeError, ConnectionResetError)):
        _send_endlessly(client)
    _assert_answers(mounted)


def _send_endlessly(client: socket.socket) -> None:
    while True:
        client.sendall(b"x" * (LINE_MAX // 4))


def test_a_client_that_sends_nothing_delays_no_other(mounted: Mounted) -> None:
    with _client(mounted) as silent:
        silent.sendall(b'{"op": "in')
        _assert_answers(mounted)


def test_half_a_line_is_not_carried_out(mounted: Mounted) -> None:
    with _client(mounted) as client:
        client.sendall(b'{"op": "write_file", "path": "half", "data": "aGVs')
    _assert_answers(mounted)
    assert not list(mounted.path.iterdir())


def test_the_request_of_a_client_that_goes_away_is_carried_out(mounted: Mounted) -> None:
    with _client(mounted) as client:
        client.sendall(b'{"op": "write_file", "path": "file", "data": "aGVsbG8="}\n')
    wait_until((mounted.path / "file").exists, "the file")
    assert (mounted.path / "file").read_bytes() == b"hello"
    _assert_answers(mounted)


def test_requests_sent_ahead_are_answered_in_order(mounted: Mounted) -> None:
    texts = [b"line %d\n" % number for number in range(500)]
    with _client(mounted) as client:
        client.sendall(b"".join(_append(number, text) for number, text in enumerate(texts)))
        lines = client.makefile("rb")
        answers = [json.loads(lines.readline()) for _ in texts]
    assert [answer["id"] for answer in answers] == list(range(500))
    assert all(answer["ok"] for answer in answers)
    assert (mounted.path / "log").read_bytes() == b"".join(texts)


def _append(number: int, text: bytes) -> bytes:
    request = {"v": 1, "id": number, "op": "append_file", "path": "log", "data": base64.b64encode(text).decode()}
    return json.dumps(request).encode() + b"\n"


def test_a_long_line_in_small_pieces(mounted: Mounted) -> None:
    content = bytes(range(256)) * 12_000
    line = _append(1, content)
    with _client(mounted) as client:
        for start in range(0, len(line), 1000):
            client.sendall(line[start : start + 1000])
        assert json.loads(client.makefile("rb").readline())["ok"]
    assert (mounted.path / "log").read_bytes() == content


def test_a_client_that_does_not_read_delays_no_other(mounted: Mounted) -> None:
    (mounted.path / "file").write_bytes(bytes(1 << 20))
    with _client(mounted) as client:
        client.sendall(b'{"op": "read_file", "path": "file"}\n' * 50)
        _assert_answers(mounted)


def test_an_error_repeats_its_paths_and_shortens_a_long_one(mounted: Mounted) -> None:
    with _client(mounted) as client:
        answer = _answer(client, b'{"id": null, "op": "copy_file", "source": "one", "target": "two"}')
        message = "one -> two: No such file or directory"
        assert answer["error"] == {"code": "ENOENT", "message": message, "path": "one", "target": "two"}
        client.sendall(b'{"op": "stat", "path": "' + b"n" * (1 << 20) + b'"}\n')
        line = client.makefile("rb").readline()
        assert json.loads(line)["error"]["code"] == "ENAMETOOLONG"
        assert len(line) < 10_000


def test_another_user_gets_no_answer(mounted: Mounted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the modes of socket and directory allow a connection."""
    path = next((mounted.path.parent / "run").glob("*.sock"))
    path.chmod(0o666)
    path.parent.chmod(0o755)
    monkeypatch.chdir(path.parent)
    with unprivileged(), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
        stranger.settimeout(30)
        stranger.connect(path.name)
        with suppress(BrokenPipeError):  # already disconnected
            stranger.sendall(b'{"op": "write_file", "path": "file", "data": ""}\n')
        with suppress(ConnectionResetError):
            assert stranger.recv(100) == b""
    _assert_answers(mounted)
    assert not list(mounted.path.iterdir())
