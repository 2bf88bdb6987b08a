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
from vfsd.daemon.log import LogFile, _Formatter

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
    handler = LogFile(str(tmp_path / "log"), take_streams=False)
    handler.setFormatter(_Formatter())
    handler.handle(_record("mounted at %s", name))
    handler.close()
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert line.isprintable()
