"""The Python client as programs use it: threads share it, and it survives the end of a daemon."""

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.control.conftest import Connect
from tests.support.files import NOBODY, unprivileged
from tests.support.mounted import Mounted
from vfsd import Vfs, connect
from vfsd.client.connection import NoAnswer, ask
from vfsd.errors import VfsdError
from vfsd.host.registrations import socket_path


def test_threads_may_share_it(mounted: Mounted, vfs: Vfs) -> None:
    def work(number: int) -> bytes:
        for step in range(50):
            vfs.write_file(f"{number}/{step}", f"{number} {step}", parents=True)
            assert vfs.read_file(f"{number}/{step}", encoding="ascii") == f"{number} {step}"
            vfs.append_file("log", bytes([number]))
        return (mounted.path / str(number) / "49").read_bytes()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [b"0 49", b"1 49", b"2 49", b"3 49"]
    assert sorted((mounted.path / "log").read_bytes()) == sorted(bytes(range(4)) * 50)


def test_it_finds_a_daemon_that_was_started_again(mounted: Mounted, vfs: Vfs) -> None:
    vfs.write_file("file", b"content")
    mounted.remount()
    assert vfs.read_file("file") == b"content"
    mounted.kill()
    mounted.start()
    assert vfs.read_file("file") == b"content"


def test_a_daemon_that_does_not_answer_in_time(mounted: Mounted, connected: Connect) -> None:
    connected(mounted)
    with connect(mounted.path, timeout=0.2) as vfs:
        with mounted.frozen(), pytest.raises(TimeoutError, match="no answer"):
            vfs.info()
        assert vfs.info()["scope"] == mounted.scope


def test_without_a_mount_the_connection_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VFSD_RUNTIME_DIR", os.fspath(tmp_path))
    with pytest.raises(ConnectionRefusedError, match="'vfsd status' lists the mounts") as caught:
        connect(tmp_path / "nothing")
    assert caught.value.filename == os.fspath(tmp_path / "nothing")


def test_a_link_to_the_mountpoint_can_be_connected_to(mounted: Mounted, vfs: Vfs, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(mounted.path)
    with connect(tmp_path / "link") as other:
        assert other.info()["mountpoint"] == os.fspath(mounted.path) == vfs.mountpoint


def test_content_may_have_any_bytes_like_type(vfs: Vfs) -> None:
    for data in (b"bytes", bytearray(b"bytes"), memoryview(b"bytes"), "bytes"):
        vfs.write_file("file", data)
        assert vfs.read_file("file") == b"bytes"


def test_content_that_is_too_long_for_a_line_is_not_sent(vfs: Vfs) -> None:
    with pytest.raises(OSError, match="use the mount") as caught:
        vfs.write_file("file", bytes(80 << 20))
    assert caught.value.filename == "file"
    assert vfs.readdir() == []


def test_a_stranger_who_listens_in_the_place_of_a_daemon_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the directory of registrations looks right."""
    runtime = tmp_path / "run"
    monkeypatch.setenv("VFSD_RUNTIME_DIR", os.fspath(runtime))
    runtime.mkdir(mode=0o700)
    path = socket_path(os.fspath(tmp_path / "mnt"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.fspath(path))
        with unprivileged():  # the kernel notes who calls listen
            listening.listen()
        with pytest.raises(PermissionError, match="uid 65534 listens there"):
            connect(tmp_path / "mnt")
        with pytest.raises(NoAnswer, match="uid 65534 listens there"):
            ask(path, "info")
        for _ in range(2):
            accepted, _address = listening.accept()
            with accepted:
                assert accepted.recv(100) == b""


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_a_directory_that_a_stranger_may_have_made_is_not_used(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VFSD_RUNTIME_DIR", os.fspath(tmp_path / "run"))
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(mode)
    os.chown(tmp_path / "run", 0 if mode == 0o777 else NOBODY, 0)
    with pytest.raises(VfsdError, match="must belong to uid 0 alone"):
        connect(tmp_path / "mnt")
