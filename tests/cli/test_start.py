"""``vfsd mount``: what it prints, what it refuses, and its exit status."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import detached, failure, is_alive, mounts_at, statuses, success
from tests.support.mounted import MountFactory, run_vfsd
from tests.support.servers import RedisServer
from vfsd.cli import COMMANDS


def test_version_prints_four_versions() -> None:
    lines = success(run_vfsd("--version", env=dict(os.environ))).splitlines()
    expected = (
        r"vfsd \d+\.\d+\.\d+",
        r"pyfuse3 \d+\.\d+\.\d+",
        r"libfuse 3\.\d+\.\d+",
        rf"kernel {os.uname().release}",
    )
    assert len(lines) == len(expected)
    assert all(re.match(pattern, line) for pattern, line in zip(expected, lines, strict=True))


def test_help_lists_the_commands() -> None:
    printed = success(run_vfsd("--help", env=dict(os.environ)))
    assert all(f"\n  {command} " in printed for command in COMMANDS)


@pytest.mark.parametrize("options", [[], ["--foreground"]], ids=["detached", "foreground"])
def test_without_a_redis_the_error_names_the_address_and_what_to_do(tmp_path: Path, options: list[str]) -> None:
    with socket.socket() as bound:  # bound, but not listening
        bound.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{bound.getsockname()[1]}/3"
        log = tmp_path / "log"
        arguments = ["mount", str(tmp_path / "mnt"), "--scope", "run", "--store", url, "--log-file", str(log), *options]
        result = run_vfsd(*arguments, env=dict(os.environ))
    line = result.stderr.splitlines()[-1]
    assert (result.returncode, result.stdout) == (3, "")
    assert line.startswith(f"vfsd: cannot reach the store {url}: ")
    assert all(hint in line for hint in ("start Redis there", "--store redis://", "--store sqlite:PATH"))
    assert not (tmp_path / "mnt").exists()


def test_the_default_store_is_a_redis_on_this_host(tmp_path: Path) -> None:
    """The command runs in an empty network namespace, so that it finds no Redis."""
    environment = {key: value for key, value in os.environ.items() if key != "VFSD_STORE"}
    command = ["unshare", "--net", sys.executable, "-m", "vfsd", "scopes"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert failure(result, 3).startswith("cannot reach the store redis://127.0.0.1:6379/0: ")


@pytest.mark.parametrize("name", ["a/b", "-x", "", "ü", "a b", "s" * 201, "{x}", "."])
def test_a_bad_name_for_a_scope_is_refused(tmp_path: Path, name: str) -> None:
    result = run_vfsd("mount", str(tmp_path / "mnt"), f"--scope={name}", env=dict(os.environ))
    assert failure(result, 2).startswith(f"scope {name!r}: a name is up to 200 letters")
    assert not (tmp_path / "mnt").exists()


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "nonsense", "redis://127.0.0.1:no/0"])
def test_a_bad_store_is_refused(tmp_path: Path, url: str) -> None:
    result = run_vfsd("scopes", "--store", url, env=dict(os.environ))
    assert failure(result, 2).startswith(f"store {url}: ")


def test_a_missing_scope_is_created_with_a_message(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    with detached(mounted) as daemon:
        first = daemon.mount()
        assert success(first) == f"scope {mounted.scope} mounted at {mounted.path}, 0 files\n"
        assert f"vfsd: created scope {mounted.scope} in {redis_server.url}\n" in first.stderr
        assert f"created {mounted.path}\n" in first.stderr
        success(mounted.vfsd("umount", str(mounted.path)))
        second = daemon.mount("--must-exist")
        assert success(second) == f"scope {mounted.scope} mounted at {mounted.path}, 0 files\n"
        assert "created" not in second.stderr


def test_must_exist_refuses_to_create(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    mounted.path.mkdir()
    mounted.expected.append(f"there is no scope {mounted.scope}")
    with detached(mounted) as daemon:
        line = failure(_without_warnings(daemon.mount("--must-exist")), 6)
    assert line == f"there is no scope {mounted.scope} in the store {redis_server.url}"
    assert f"\n{mounted.scope} " not in "\n" + success(mounted.vfsd("scopes"))


def test_mounting_the_same_scope_again_at_the_same_path_succeeds(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    mounted = mount(redis_server.url)
    result = mounted.vfsd("mount", str(mounted.path), "--scope", mounted.scope)
    assert success(result) == f"scope {mounted.scope} is already mounted at {mounted.path}\n"
    assert result.stderr == ""
    assert len(mounts_at(mounted.path)) == 1


def test_a_second_mount_elsewhere_is_refused_with_the_owner_in_the_message(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    first = mount(redis_server.url)
    second = mount(redis_server.url, scope=first.scope, start=False)
    second.path.mkdir()
    second.expected.append(f"scope {first.scope} is mounted")
    with detached(second) as daemon:
        line = failure(_without_warnings(daemon.mount()), 7)
    owner = (
        rf"host {re.escape(socket.gethostname())}, pid {first.pid}, at {re.escape(str(first.path))}, since \d+ s ago"
    )
    assert re.match(rf"scope {first.scope} is mounted: {owner}; unmount it there", line)
    assert mounts_at(second.path) == []
    (first.path / "file").write_bytes(b"the first still writes")


def test_another_scope_at_the_same_path_is_refused(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    line = failure(mounted.vfsd("mount", str(mounted.path), "--scope", "another"), 9)
    assert line.startswith(f"{mounted.path}: scope {mounted.scope} is mounted there; unmount it first")


def test_the_same_scope_of_another_store_at_the_same_path_is_refused(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path
) -> None:
    mounted = mount(redis_server.url)
    arguments = ["mount", str(mounted.path), "--scope", mounted.scope, "--store", f"sqlite:{tmp_path}/db"]
    line = failure(mounted.vfsd(*arguments), 9)
    assert line == f"{mounted.path}: scope {mounted.scope} of {redis_server.url} is mounted there"


def test_a_mountpoint_that_is_not_empty_needs_nonempty(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    mounted.path.mkdir()
    (mounted.path / "hidden").touch()
    with detached(mounted) as daemon:
        line = failure(daemon.mount(), 9)
        assert line == f"{mounted.path}: not empty; mount elsewhere, or hide what is there with -o nonempty"
        success(daemon.mount("-o", "nonempty"))
        assert os.listdir(mounted.path) == []
        success(mounted.vfsd("umount", str(mounted.path)))
    assert os.listdir(mounted.path) == ["hidden"]


def test_a_mountpoint_that_is_not_a_directory_is_refused(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    mounted.path.touch()
    with detached(mounted) as daemon:
        assert failure(daemon.mount(), 9) == f"{mounted.path}: not a directory"


def test_a_mountpoint_is_created_with_its_parents_and_may_be_relative(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = mount(redis_server.url, start=False)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    mounted.path = tmp_path / "real" / "a b" / "mnt"
    arguments = ["link/a b/../a b/mnt", "--scope", mounted.scope, "--log-file", "log"]
    with detached(mounted):
        result = mounted.vfsd("mount", "--parents", *arguments)
        assert success(result) == f"scope {mounted.scope} mounted at {mounted.path}, 0 files\n"
        assert os.listdir("link/a b/mnt") == []
        assert success(mounted.vfsd("umount", "link/a b/mnt")) == f"unmounted {mounted.path}\n"


def test_the_mount_of_a_dead_daemon_is_cleaned_up_with_a_message(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "file").write_bytes(b"content")
    mounted.kill()
    with pytest.raises(OSError, match="Transport endpoint is not connected"):
        os.listdir(mounted.path)
    with detached(mounted) as daemon:
        result = daemon.mount()
        success(result)
        line = f"cleaned up {mounted.path}: a dead daemon had left scope {mounted.scope} mounted there\n"
        assert line in result.stderr
        assert len(mounts_at(mounted.path)) == 1
        assert (mounted.path / "file").read_bytes() == b"content"


def test_a_detached_start_returns_when_the_mount_answers(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    with detached(mounted) as daemon:
        success(daemon.mount())
        (mounted.path / "file").write_bytes(b"content")
        (entry,) = statuses(mounted, mounted.path)
        assert entry["state"] == "mounted"
        pid = daemon.pid()
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        session, terminal = int(status[3]), int(status[4])
        assert (session != os.getsid(0), terminal) == (True, 0)
        assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
        assert Path(f"/proc/{pid}/fd/0").readlink() == Path("/dev/null")
        assert {Path(f"/proc/{pid}/fd/{number}").readlink() for number in (1, 2)} == {mounted.log}
        success(mounted.vfsd("umount", str(mounted.path)))
        assert not is_alive(pid)
    assert f"scope {mounted.scope} mounted at {mounted.path}" in mounted.log.read_text()


def test_the_default_log_file(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    log = Path(f"/var/log/vfsd/{mounted.scope}.log")
    try:
        with detached(mounted):
            success(mounted.vfsd("mount", str(mounted.path), "--scope", mounted.scope))
            assert f"scope {mounted.scope} mounted at {mounted.path}" in log.read_text()
    finally:
        log.unlink(missing_ok=True)


def test_a_log_that_cannot_be_written_is_refused(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    mounted.path.mkdir()
    arguments = ["mount", str(mounted.path), "--scope", mounted.scope, "--log-file", "/proc/nowhere/log"]
    line = failure(mounted.vfsd(*arguments), 2)
    assert line.startswith("cannot write the log file /proc/nowhere/log: ")
    assert mounts_at(mounted.path) == []


def _without_warnings(result: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """Remove the warnings about the server's persistence, which the daemon printed before it failed."""
    lines = [line for line in result.stderr.splitlines() if "does not persist" not in line]
    result.stderr = "\n".join(lines)
    return result
