"""Mountpoints: which are refused, links to them, and that a mountpoint never has two mounts."""

import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.cli import detached, failure, mounts_at, statuses, success
from tests.support.mounted import MountFactory, run_vfsd, wait_until
from tests.support.servers import RedisServer, redis_program
from vfsd.host import registrations


def _environment(**more: str) -> dict[str, str]:
    return {**os.environ, **more}


# --- the store, log and registrations of a daemon may not lie below its own mount


@pytest.mark.parametrize("kind", ["store", "socket", "log", "registrations"])
@pytest.mark.parametrize("place", ["mnt", "mnt/below", "link/below"])
def test_what_the_daemon_needs_may_not_lie_below_its_mount(tmp_path: Path, kind: str, place: str) -> None:
    (tmp_path / "link").symlink_to("mnt")
    path = f"{tmp_path}/{place}"
    arguments = [
        "mount",
        str(tmp_path / "mnt"),
        "--scope=run",
        "-o",
        "nonsense",
    ]  # if it is not refused, this fails and does not hang
    arguments += {
        "store": ["--store", f"sqlite:{path}"],
        "socket": ["--store", f"unix://{path}"],
        "log": ["--store", f"sqlite:{tmp_path}/db", "--log-file", path],
        "registrations": ["--store", f"sqlite:{tmp_path}/db"],
    }[kind]
    run = path if kind == "registrations" else f"{tmp_path}/run"
    line = failure(run_vfsd(*arguments, env=_environment(VFSD_RUNTIME_DIR=run)), 2)
    named = "store" if kind == "socket" else kind
    assert line == f"{path}: the {named} of a mount cannot lie at or below its mountpoint {tmp_path}/mnt"
    assert not (tmp_path / "mnt").exists()


def test_a_relative_log_file_is_relative_to_the_working_directory_of_the_command(
    mount: MountFactory, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = mount(redis_server.url, start=False)
    (mounted.path.parent / "here").mkdir()
    monkeypatch.chdir(mounted.path.parent / "here")
    with detached(mounted):
        success(mounted.vfsd("mount", str(mounted.path), "--scope", mounted.scope, "--log-file", "log"))
        assert f"scope {mounted.scope} mounted at" in Path("log").read_text()
        success(mounted.vfsd("umount", str(mounted.path)))


# --- one mount at a mountpoint, even if links lead to it


def test_a_link_stands_for_the_mountpoint_it_points_to(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    mounted.path.mkdir()
    link, link_to_link = mounted.path.parent / "link", mounted.path.parent / "link_to_link"
    link.symlink_to(mounted.path.name)
    link_to_link.symlink_to(link)
    with detached(mounted) as daemon:
        first = mounted.vfsd("mount", str(link_to_link), "--scope", mounted.scope)
        assert success(first) == f"scope {mounted.scope} mounted at {mounted.path}, 0 files\n"
        again = mounted.vfsd("mount", str(link), "--scope", mounted.scope)
        assert success(again) == f"scope {mounted.scope} is already mounted at {mounted.path}\n"
        assert success(daemon.mount()) == again.stdout
        assert len(mounts_at(mounted.path)) == 1
        (entry,) = statuses(mounted, mounted.path)
        assert entry["state"] == "mounted"
        assert success(mounted.vfsd("umount", str(link_to_link))) == f"unmounted {mounted.path}\n"
        assert mounts_at(mounted.path) == []


def test_a_link_to_a_dead_mount_can_be_unmounted(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    link = mounted.path.parent / "link"
    link.symlink_to(mounted.path)
    mounted.kill()
    assert success(mounted.vfsd("umount", str(link))) == f"unmounted {mounted.path}\n"


def test_two_commands_at_once_make_one_mount(mount: MountFactory) -> None:
    """The first command waits for a frozen store. The second waits for the first, and finds the mount."""
    with RedisServer(redis_program()) as server:
        mounted = mount(server.url, "--store-timeout", "60", start=False)
        command = [sys.executable, "-m", "vfsd", "mount", str(mounted.path), "--scope", mounted.scope]
        command += ["--store-timeout", "60", "--log-file", str(mounted.log)]
        with detached(mounted):
            server.freeze()
            commands = [
                subprocess.Popen(command, env=mounted.environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
            ]
            try:
                wait_until(lambda: _locks(mounted.path.parent / "run"), "the reservation")
            finally:
                server.thaw()
            printed = sorted(process.communicate(timeout=60)[0] for process in commands)
            assert [process.returncode for process in commands] == [0, 0]
            assert printed == [
                f"scope {mounted.scope} is already mounted at {mounted.path}\n",
                f"scope {mounted.scope} mounted at {mounted.path}, 0 files\n",
            ]
            assert len(mounts_at(mounted.path)) == 1
            assert _locks(mounted.path.parent / "run") == []
            success(mounted.vfsd("umount", str(mounted.path)))


def _locks(directory: Path) -> list[Path]:
    return list(directory.glob("*.lock"))


def test_a_reserved_mountpoint_is_refused_to_others(
    mount: MountFactory, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = mount(redis_server.url, start=False)
    monkeypatch.setenv("VFSD_RUNTIME_DIR", mounted.environment["VFSD_RUNTIME_DIR"])
    reservation = registrations.reserve(str(mounted.path))
    assert reservation is not None
    with reservation, detached(mounted) as daemon:
        assert registrations.reserve(str(mounted.path)) is None
        elsewhere = registrations.reserve(f"{mounted.path}-2")
        assert elsewhere is not None
        elsewhere.end()
        line = failure(daemon.mount(), 9)
        assert line == f"{mounted.path}: another command is mounting there; try again when it has finished"
        reservation.end()
        success(daemon.mount())


def test_a_failed_start_leaves_no_reservation(tmp_path: Path) -> None:
    arguments = ["mount", str(tmp_path / "mnt"), "--scope=run", "--store", f"sqlite:{tmp_path}/db", "--must-exist"]
    for options in ([], ["--foreground"]):
        environment = _environment(VFSD_RUNTIME_DIR=str(tmp_path / "run"))
        result = run_vfsd(*arguments, *options, "--log-file", str(tmp_path / "log"), env=environment)
        assert result.returncode == 6
        assert list((tmp_path / "run").iterdir()) == []


def test_all_mounts_of_dead_daemons_at_a_mountpoint_are_cleaned_up(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    first = mount(redis_server.url)
    second = mount(redis_server.url)
    subprocess.run(["mount", "--bind", second.path, first.path], check=True)
    first.kill()
    second.kill()
    assert len(mounts_at(first.path)) == 2
    first.start()
    assert len(mounts_at(first.path)) == 1


# --- registrations


def test_umount_does_not_wait_for_another_process_with_the_registered_pid(
    mount: MountFactory, redis_server: RedisServer
) -> None:
    """The pid of a dead daemon may belong to another process: here to this one."""
    mounted = mount(redis_server.url)
    mounted.kill()
    (path,) = (mounted.path.parent / "run").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "pid": os.getpid()}))
    assert success(mounted.vfsd("umount", "--timeout", "1", str(mounted.path))) == f"unmounted {mounted.path}\n"


@pytest.mark.parametrize("kind", ["below a file", "too long", "relative", "of others"])
@pytest.mark.parametrize("options", [[], ["--foreground"]], ids=["detached", "foreground"])
def test_a_runtime_directory_that_cannot_be_used_is_refused(tmp_path: Path, kind: str, options: list[str]) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    directory = {
        "below a file": f"{tmp_path}/file/run",
        "too long": f"{tmp_path}/{'x' * 100}",
        "relative": "run",
        "of others": f"{tmp_path}/open",
    }[kind]
    arguments = ["mount", str(tmp_path / "mnt"), "--scope=run", "--store", f"sqlite:{tmp_path}/db", *options]
    result = run_vfsd(*arguments, env=_environment(VFSD_RUNTIME_DIR=directory))
    line = failure(result, 2 if kind == "relative" else 1)
    assert directory in line
    assert "VFSD_RUNTIME_DIR" in line
    assert not (tmp_path / "mnt").exists()


# --- inherited descriptors


@contextmanager
def _inheritable_lock(path: Path) -> Iterator[int]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.set_inheritable(file.fileno(), True)
        yield file.fileno()


def test_a_detached_daemon_keeps_no_descriptor_of_the_command(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    lock = mounted.path.parent / "lock"
    command = [sys.executable, "-m", "vfsd", "mount", str(mounted.path), "--scope", mounted.scope]
    command += ["--log-file", str(mounted.log)]
    with detached(mounted) as daemon:
        with _inheritable_lock(lock) as descriptor:
            subprocess.run(command, env=mounted.environment, pass_fds=[descriptor], check=True, capture_output=True)
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        targets = [os.readlink(entry) for entry in Path(f"/proc/{daemon.pid()}/fd").iterdir()]
        assert not [target for target in targets if re.search(r"pipe:|/lock$|\.lock", target)], targets
        success(mounted.vfsd("umount", str(mounted.path)))
