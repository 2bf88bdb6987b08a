"""``vfsd destroy``: it looks, asks once, and says what happened. What it leaves, and which logs go."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.cli import failure, success
from tests.support.mounted import Mounted, MountFactory, run_vfsd, wait_until
from tests.support.servers import RedisServer
from vfsd import connect
from vfsd.config import default_log_file

DECLINED = "vfsd: nothing was destroyed: the answer was not yes (--yes does not ask)"


def _scopes(mounted: Mounted) -> str:
    return success(mounted.vfsd("scopes", "--json"))


@pytest.fixture
def two(mount: MountFactory, redis_server: RedisServer) -> tuple[Mounted, Mounted]:
    """Return two scopes that are not mounted any longer: the first has a file of 5 bytes."""
    first, second = mount(redis_server.url), mount(redis_server.url)
    (first.path / "file").write_bytes(b"bytes")
    assert (first.stop(), second.stop()) == (0, 0)
    return first, second


def test_destroy_is_refused_while_mounted_and_then_deletes_everything(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "file").write_bytes(b"content")
    line = failure(mounted.vfsd("destroy", mounted.scope, "--yes"), 7)
    assert f"pid {mounted.pid}, at {mounted.path}" in line
    assert (mounted.path / "file").read_bytes() == b"content"
    assert mounted.stop() == 0
    assert success(mounted.vfsd("destroy", mounted.scope, "--yes")) == f"destroyed scope {mounted.scope}\n"
    assert mounted.scope not in _scopes(mounted)
    with redis_server.client() as client:
        assert client.keys(f"*{mounted.scope}*") == []
    assert failure(mounted.vfsd("destroy", mounted.scope, "--yes"), 6).startswith("there is no scope")
    mounted.start()
    assert os.listdir(mounted.path) == []


def test_a_read_only_mount_does_not_prevent_it(mount: MountFactory, redis_server: RedisServer) -> None:
    writer = mount(redis_server.url)
    (writer.path / "file").write_bytes(b"content")
    assert writer.stop() == 0
    reader = mount(redis_server.url, "--read-only", scope=writer.scope)
    success(reader.vfsd("destroy", writer.scope, "--yes"))
    assert (reader.path / "file").read_bytes() == b"content"


def test_one_question_shows_what_will_go_of_each_scope(two: tuple[Mounted, Mounted]) -> None:
    first, second = two
    result = first.vfsd("destroy", first.scope, second.scope, first.scope, text="y\n")
    header, one, other, question = result.stderr.splitlines()
    assert header.split() == ["SCOPE", "FILES", "BYTES", "CHANGED"]
    assert one.split()[:4] == [first.scope, "1", "5", "B"]
    assert other.split()[:4] == [second.scope, "0", "0", "B"]
    assert question == "Delete all files of these 2 scopes for good? [y/N]: "
    assert success(result) == f"destroyed scope {first.scope}\ndestroyed scope {second.scope}\n"
    assert first.scope not in _scopes(first)
    assert second.scope not in _scopes(first)


@pytest.mark.parametrize("answer", ["n\n", "\n", ""], ids=["no", "empty line", "end of input"])
def test_any_answer_but_yes_destroys_nothing(two: tuple[Mounted, Mounted], answer: str) -> None:
    first, _ = two
    result = first.vfsd("destroy", first.scope, text=answer)
    assert (result.returncode, result.stdout) == (14, "")
    assert f"Delete all files of scope {first.scope} for good?" in result.stderr
    assert result.stderr.splitlines()[-1].endswith(DECLINED)
    assert "Aborted" not in result.stderr
    assert first.scope in _scopes(first)


def test_what_cannot_be_destroyed_is_told_before_the_question(
    two: tuple[Mounted, Mounted], mount: MountFactory, redis_server: RedisServer
) -> None:
    first, _ = two
    busy = mount(redis_server.url)
    for more in ((), ("--yes",)):
        result = first.vfsd("destroy", first.scope, busy.scope, "missing", *more, text="y\n")
        assert (result.returncode, result.stdout) == (7, "")
        mounted_there, missing = result.stderr.splitlines()
        assert f"scope {busy.scope} is mounted: " in mounted_there
        assert f"pid {busy.pid}, at {busy.path}" in mounted_there
        assert missing.startswith("vfsd: there is no scope missing in the store ")
    assert first.scope in _scopes(first)
    assert failure(first.vfsd("destroy", "missing", "--store", "redis://127.0.0.1:1/0"), 3).startswith("cannot reach")


def test_a_scope_that_is_mounted_during_the_question_does_not_keep_the_others(
    two: tuple[Mounted, Mounted],
) -> None:
    first, second = two
    with _asked(first, first.scope, second.scope) as asked:
        first.start()
        output, errors = asked.communicate("y\n", timeout=60)
    assert asked.returncode == 7
    assert output == f"destroyed scope {second.scope}\n"
    assert f"scope {first.scope} is mounted: " in errors
    assert (first.path / "file").read_bytes() == b"bytes"


@contextmanager
def _asked(mounted: Mounted, *scopes: str) -> Iterator["subprocess.Popen[str]"]:
    """Run ``vfsd destroy``, and yield it when it has asked."""
    command = [sys.executable, "-m", "vfsd", "destroy", *scopes]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=mounted.environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=0
    ) as asked:
        assert asked.stderr is not None
        seen = ""
        while not seen.endswith("[y/N]: "):
            letter = asked.stderr.read(1)
            assert letter, seen
            seen += letter
        yield asked


# --- logs


@contextmanager
def _detached_daemon(mounted: Mounted) -> Iterator[Path]:
    """Run a daemon that logs to the default place, and yield its log. Afterwards no log is left."""
    log = default_log_file(mounted.scope)
    try:
        success(run_vfsd("mount", str(mounted.path), "--scope", mounted.scope, env=mounted.environment))
        yield log
    finally:
        mounted.clean_up()
        for left in log.parent.glob(f"{log.name}*"):
            left.unlink()


def _new(mount: MountFactory, store: str) -> Mounted:
    return mount(store, start=False)


def test_the_default_log_goes_with_its_scope(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = _new(mount, redis_server.url)
    with _detached_daemon(mounted) as log:
        success(mounted.vfsd("umount", str(mounted.path)))
        rotated = [log.with_name(f"{log.name}.{number}") for number in (1, 2, 10)]
        others = [log.with_name(f"{log.name}.old"), log.with_name(f"{log.name}.1.log")]
        for file in (*rotated, *others):
            file.touch()
        assert success(mounted.vfsd("destroy", mounted.scope, "--yes")) == (
            f"destroyed scope {mounted.scope} and its log {log}\n"
        )
        assert [path for path in (log, *rotated, *others) if path.exists()] == others


def test_a_log_that_another_daemon_writes_stays(mount: MountFactory, redis_server: RedisServer, tmp_path: Path) -> None:
    """Two stores may each have a scope of one name, and these scopes have one log."""
    mounted = _new(mount, redis_server.url)
    with _detached_daemon(mounted) as log:
        success(mounted.vfsd("umount", str(mounted.path)))
        other = mount(f"sqlite:{tmp_path}/scopes.db", scope=mounted.scope, start=False)
        with _detached_daemon(other):
            log.with_name(f"{log.name}.1").touch()
            printed = success(mounted.vfsd("destroy", mounted.scope, "--yes"))
            assert printed == f"destroyed scope {mounted.scope}\n"
            assert log.exists()
            assert log.with_name(f"{log.name}.1").exists()
            success(other.vfsd("umount", str(other.path)))


def test_a_log_that_the_operator_chose_stays(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    assert mounted.stop() == 0
    success(mounted.vfsd("destroy", mounted.scope, "--yes"))
    assert mounted.log.exists()


def test_a_daemon_that_destroys_its_scope_takes_its_own_log_along(
    mount: MountFactory, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = _new(mount, redis_server.url)
    monkeypatch.setenv("VFSD_RUNTIME_DIR", mounted.environment["VFSD_RUNTIME_DIR"])
    with _detached_daemon(mounted) as log:
        assert log.exists()
        with connect(os.fspath(mounted.path)) as vfs:
            vfs.destroy()
        wait_until(lambda: not mounted.is_mounted(), "the mount to go")
        wait_until(lambda: not log.exists(), "the log to go")
