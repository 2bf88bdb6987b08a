"""Messages to the service manager: READY when the mount serves all its files, STOPPING when the end begins."""

import os
import socket
from pathlib import Path

import pytest

from tests.support.mounted import MountFactory
from tests.support.servers import RedisServer


def test_ready_is_sent_after_hydration_and_stopping_at_the_end(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = mount(redis_server.url)
    (first.path / "file").write_text("there before")
    assert first.stop() == 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(os.fspath(tmp_path / "notify"))
        manager.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", os.fspath(tmp_path / "notify"))
        second = mount(redis_server.url, scope=first.scope, start=False)
        second.start()
        message = manager.recv(4096).decode()
        assert message.startswith("READY=1\n")
        assert f"mounted at {second.path}, 1 file" in message
        assert (second.path / "file").read_text() == "there before"
        assert second.stop() == 0
        assert manager.recv(4096).decode() == "STOPPING=1"
