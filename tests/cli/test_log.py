"""The log of a daemon: who may read it, that it has no content, and that it follows a rotation."""

import logging
import os
import re
import signal
import stat
import sys
from pathlib import Path

import pytest

from tests.support.cli import detached, success
from tests.support.mounted import MountFactory, wait_until
from tests.support.servers import RedisServer
from vfsd.daemon.log import _Formatter
from vfsd.daemon.log_file import LogFile, create_log_file

SECRET = "the secret content"


def test_only_owner_and_group_may_read_the_log(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    old_mask = os.umask(0)
    try:
        with detached(mounted) as daemon:
            success(daemon.mount())
            assert stat.S_IMODE(mounted.log.stat().st_mode) == 0o640
            success(mounted.vfsd("umount", str(mounted.path)))
    finally:
        os.umask(old_mask)


def test_descriptors_and_the_dump_of_threads_follow_a_rotation(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    rotated = mounted.log.with_suffix(".1")
    with detached(mounted) as daemon:
        success(daemon.mount())
        pid = daemon.pid()
        mounted.log.rename(rotated)  # as logrotate does; nothing is logged meanwhile
        wait_until(lambda: _targets(pid) == {str(mounted.log)}, "the descriptors to follow")
        assert stat.S_IMODE(mounted.log.stat().st_mode) == 0o640
        os.kill(pid, signal.SIGUSR1)
        wait_until(lambda: "(most recent call first)" in mounted.log.read_text(), "the threads in the log")
        wait_until(lambda: "tasks:" in mounted.log.read_text(), "the tasks in the log")
        assert "most recent call" not in rotated.read_text()
        assert str(rotated) not in {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
        success(mounted.vfsd("umount", str(mounted.path)))


def _targets(pid: int) -> set[str]:
    return {os.readlink(f"/proc/{pid}/fd/{number}") for number in (1, 2)}


def _record(message: str, *arguments: object, failed: bool = False) -> logging.LogRecord:
    return logging.LogRecord("name", logging.ERROR, "", 0, message, arguments, sys.exc_info() if failed else None)


def test_an_exception_is_logged_without_its_text() -> None:
    """A cause, a context and the members of a group are exceptions too."""
    try:
        try:
            raise KeyError(SECRET)  # noqa: TRY301 (the cause of the next)
        except KeyError as error:
            group = ExceptionGroup(SECRET, [ValueError(SECRET), UnicodeError(SECRET)])
            raise group from error
    except ExceptionGroup:
        logged = _Formatter().format(_record("a bug", failed=True))
    assert SECRET not in logged
    for name in ("KeyError", "ExceptionGroup", "ValueError", "UnicodeError"):
        assert re.search(rf"^[ |]*{name}$", logged, re.MULTILINE), name
    assert "in test_an_exception_is_logged_without_its_text" in logged


@pytest.mark.parametrize("name", ["new\nline", "\x1b[2J", "\udcff", "\u2028", "\x85"])
def test_a_name_cannot_forge_a_line(name: str, tmp_path: Path) -> None:
    handler = LogFile(str(tmp_path / "log"), 0, take_streams=False)
    handler.setFormatter(_Formatter())
    handler.handle(_record("mounted at %s", name))
    handler.close()
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert line.isprintable()


MOST = 1000


def test_a_long_log_becomes_the_one_before_and_a_new_one_begins(mount: MountFactory, redis_server: RedisServer) -> None:
    """Records of every request, and the dumps of threads, which come through the descriptors: all count."""
    mounted = mount(redis_server.url, start=False)
    with detached(mounted) as daemon:
        success(daemon.mount("--debug", "--log-max", "20K"))
        before = Path(f"{mounted.log}.1")
        while not before.exists():
            (mounted.path / "file").write_bytes(b"a request")
        assert 20 << 10 <= before.stat().st_size < 40 << 10
        first = before.stat().st_ino
        while before.stat().st_ino == first:
            (mounted.path / "file").write_bytes(b"a request")
        assert sorted(mounted.log.parent.glob(f"{mounted.log.name}*")) == [mounted.log, before]
        assert stat.S_IMODE(mounted.log.stat().st_mode) == 0o640
        assert _targets(daemon.pid()) == {str(mounted.log)}
        success(mounted.vfsd("umount", str(mounted.path)))


def test_daemons_that_share_a_log_rotate_it_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    handlers = [LogFile(str(path), MOST, take_streams=False) for _ in range(2)]
    for number in range(60):
        handlers[number % 2].handle(_record("%s", f"record {number:03} " + "x" * 88))
        kept = [file.read_text() for file in (path, Path(f"{path}.1")) if file.exists()]
        assert sum(map(len, kept)) < 2 * MOST + 200
        last = "".join(reversed(kept)).splitlines()
        assert [int(line.split()[1]) for line in last] == list(range(number + 1 - len(last), number + 1))
    for handler in handlers:
        handler.close()


def test_without_a_limit_nothing_is_rotated(tmp_path: Path) -> None:
    path = tmp_path / "log"
    handler = LogFile(str(path), 0, take_streams=False)
    for _ in range(50):
        handler.handle(_record("x" * 100))
    handler.close()
    assert os.listdir(tmp_path) == ["log"]


def test_making_a_log_tells_whether_it_is_new(tmp_path: Path) -> None:
    assert create_log_file(str(tmp_path / "deep/log"), parents=True)
    assert not create_log_file(str(tmp_path / "deep/log"), parents=True)
