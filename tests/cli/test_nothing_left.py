"""A mount that does not come up leaves nothing behind: no scope, no directory, no log, no file of a store."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cli import failure, offer_store, success, summaries
from tests.support.mounted import PATIENCE, Mounted, MountFactory, wait_until
from tests.support.servers import RedisServer
from vfsd.config import default_log_file


def _not_a_skill(place: Path) -> str:
    (place / "nothing").mkdir()
    return f"--skill {place}/nothing"


def _seeds_that_exclude_each_other(place: Path) -> str:
    (place / "file").touch()
    return f"--seed {place}/file:/notes --seed {place}/file:/notes/below"


MISTAKES: dict[str, tuple[int, Callable[[Path], str]]] = {
    "an unknown mount option": (2, lambda _place: "-o foo"),
    "a mount option that the kernel refuses": (9, lambda _place: "-o blksize=512"),
    "a size": (2, lambda _place: "--max-bytes 2Q"),
    "no skill": (2, _not_a_skill),
    "a missing seed": (2, lambda place: f"--seed {place}/missing:/x"),
    "seeds that exclude each other": (2, _seeds_that_exclude_each_other),
    "a store that is away": (3, lambda _place: "--store redis://127.0.0.1:1/0"),
    "a log that cannot be written": (2, lambda _place: "--log-file /dev/null/log"),
    "a log in no directory": (2, lambda place: f"--log-file {place}/missing/log"),
}


@pytest.fixture(params=["redis", "sqlite"])
def mounted(request: pytest.FixtureRequest, mount: MountFactory, redis_server: RedisServer, tmp_path: Path) -> Mounted:
    """Return what is not mounted yet, from each kind of store. The SQLite file does not exist yet."""
    return mount(redis_server.url if request.param == "redis" else f"sqlite:{tmp_path}/scopes.db", start=False)


def _leftovers(mounted: Mounted) -> list[str]:
    """Return what a failed mount has left."""
    log = default_log_file(mounted.scope)
    found = [os.fspath(path) for path in (mounted.path, log) if path.exists()]
    listed = mounted.vfsd("scopes").stdout
    return [*found, *([listed] if mounted.scope in listed else [])]


@pytest.mark.parametrize(("status", "mistake"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_leaves_nothing(
    mounted: Mounted, tmp_path: Path, status: int, mistake: Callable[[Path], str]
) -> None:
    options = shlex.split(mistake(tmp_path))
    place = "--foreground" if mounted.store.startswith("sqlite:") else "--verbose"  # each way once
    ended = mounted.vfsd("mount", os.fspath(mounted.path), "--scope", mounted.scope, place, *options)
    assert ended.returncode == status, ended.stderr
    assert "Traceback" not in ended.stderr
    assert _leftovers(mounted) == []
    assert "missing" not in os.listdir(tmp_path)


def test_a_mount_option_is_tried_before_the_store_is_opened(mount: MountFactory, tmp_path: Path) -> None:
    mounted = mount(f"sqlite:{tmp_path}/scopes.db", start=False)
    failure(mounted.vfsd("mount", os.fspath(mounted.path), "--scope", mounted.scope, "-o", "foo"), 2)
    assert not (tmp_path / "scopes.db").exists()


def test_a_mistyped_path_is_not_made(mounted: Mounted, tmp_path: Path) -> None:
    """The last component is created. Those above it are created only with ``--parents``."""
    target = tmp_path / "nope/x/y"
    command = ["mount", os.fspath(target), "--scope", mounted.scope]
    line = failure(mounted.vfsd(*command), 9)
    assert line == f"{target}: {tmp_path} has no nope: correct it, or add --parents"
    assert not (tmp_path / "nope").exists()
    failure(mounted.vfsd(*command, "--parents", "-o", "foo"), 2)
    assert not (tmp_path / "nope").exists()
    try:
        assert success(mounted.vfsd(*command, "--parents")).startswith(f"scope {mounted.scope} mounted at {target}")
    finally:
        success(mounted.vfsd("umount", os.fspath(target)))
        default_log_file(mounted.scope).unlink()


def test_what_was_there_before_stays(mounted: Mounted) -> None:
    """A scope, its limits, a directory and a log of an earlier mount do not go with a failed one."""
    mounted.start()
    (mounted.path / "file").write_text("content")
    mounted.stop()
    log = default_log_file(mounted.scope)
    log.parent.mkdir(exist_ok=True)
    log.write_text("an earlier line\n")
    try:
        ended = mounted.vfsd("mount", os.fspath(mounted.path), "--scope", mounted.scope, "-o", "blksize=512")
        assert ended.returncode == 9, ended.stderr
        assert log.read_text().startswith("an earlier line\n")
    finally:
        log.unlink()
    assert mounted.path.is_dir()
    mounted.start()
    assert (mounted.path / "file").read_text() == "content"


_SLOW = """
import trio
from pathlib import Path
from vfsd.store.sqlite.store import SqliteStore

class Slow(SqliteStore):
    async def load(self, scope):
        Path(f"{self.label.partition(':')[2]}.reached").touch()
        await trio.sleep_forever()
        yield

def open_store(url, options):
    return Slow(Path(url.partition(":")[2]), options)
"""
"""A store whose hydration never ends. A file beside it tells when it has begun."""


def test_ctrl_c_ends_the_start_and_undoes_it(
    mount: MountFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer_store(tmp_path / "package", "slow", _SLOW, monkeypatch)
    mounted = mount(f"slow:{tmp_path}/scopes.db", start=False)
    command = [sys.executable, "-m", "vfsd", "mount", os.fspath(mounted.path), "--scope", mounted.scope]
    started = subprocess.Popen(command, env=mounted.environment, stderr=subprocess.PIPE, text=True)
    wait_until((tmp_path / "scopes.db.reached").exists, "hydration to begin")
    started.send_signal(signal.SIGINT)
    _, printed = started.communicate(timeout=PATIENCE)
    assert (started.returncode, printed) == (130, "vfsd: interrupted: nothing is mounted\n")
    assert _leftovers(mounted) == []
    assert summaries(mounted, "--store", f"sqlite:{tmp_path}/scopes.db") == []


DIFFERENT = {
    "writing": (("--read-only",), (), "for reading only; unmount it first"),
    "reading": ((), ("--read-only",), "for writing; unmount it first"),
    "foreground": ((), ("--foreground",), "by another daemon"),
}


@pytest.mark.parametrize(("present", "wanted", "told"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_mount_that_is_there_and_is_not_what_was_asked_for_is_an_error(
    mount: MountFactory, redis_server: RedisServer, present: tuple[str, ...], wanted: tuple[str, ...], told: str
) -> None:
    mounted = mount(redis_server.url)
    mounted.stop()
    mounted.start(*present)
    again = mounted.vfsd("mount", os.fspath(mounted.path), "--scope", mounted.scope, *wanted)
    assert f"is already mounted there {told}" in failure(again, 9)
