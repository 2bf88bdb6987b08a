"""Where a mount may go, beside what, and that there is never more than one: links, reservations, registrations."""

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
from vfsd.errors import MountpointError
from vfsd.host import registrations
from vfsd.host.mountpoint import absolute, lies_within


def _environment(**more: str) -> dict[str, str]:
    return {**os.environ, **more}


# --- what a daemon needs may not lie below its own mount


@pytest.mark.parametrize("what", ["store", "socket", "log", "registrations"])
@pytest.mark.parametrize("way", ["mnt", "mnt/below", "link/below"])
def test_what_the_daemon_needs_may_not_lie_below_its_mount(tmp_path: Path, what: str, way: str) -> None:
    (tmp_path / "link").symlink_to("mnt")
    path = f"{tmp_path}/{way}"
    arguments = ["mount", str(tmp_path / "mnt"), "--scope=run", "-o", "nonsense"]  # if it were tried: no mount, no hang
    arguments += {
        "store": ["--store", f"sqlite:{path}"],
        "socket": ["--store", f"unix://{path}"],
        "log": ["--store", f"sqlite:{tmp_path}/db", "--log-file", path],
        "registrations": ["--store", f"sqlite:{tmp_path}/db"],
    }[what]
    run = path if what == "registrations" else f"{tmp_path}/run"
    line = failure(run_vfsd(*arguments, env=_environment(VFSD_RUNTIME_DIR=run)), 2)
    named = "store" if what == "socket" else what
    assert line == f"{path}: the {named} of a mount cannot lie at or below its mountpoint {tmp_path}/mnt"
    assert not (tmp_path / "mnt").exists()


def test_places_are_resolved_without_looking_into_the_mount(tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    (tmp_path / "mnt" / "out").symlink_to("/")
    (tmp_path / "a").symlink_to("b/../c")
    (tmp_path / "b").mkdir()
    (tmp_path / "c").symlink_to(tmp_path / "mnt")
    assert absolute(f"{tmp_path}/a/x/../y") == f"{tmp_path}/mnt/y"
    assert absolute(f"{tmp_path}/a/out/etc") == "/etc"
    assert lies_within(f"{tmp_path}/a/out/etc", f"{tmp_path}/mnt")
    assert not lies_within(f"{tmp_path}/mnt2", f"{tmp_path}/mnt")
    assert lies_within("/etc", "/")
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(MountpointError, match="Too many levels"):
        absolute(f"{tmp_path}/round/x")


def test_a_relative_log_file_is_where_the_command_was_run(
    mount: MountFactory, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = mount(redis_server.url, start=False)
    (mounted.path.parent / "here").mkdir()
    monkeypatch.chdir(mounted.path.parent / "here")
    with detached(mounted):
        success(mounted.vfsd("mount", str(mounted.path), "--scope", mounted.scope, "--log-file", "log"))
        assert f"scope {mounted.scope} mounted at" in Path("log").read_text()
        success(mounted.vfsd("umount", str(mounted.path)))


# --- one place, by whatever name, has one mount


def test_a_link_is_the_place_it_points_to(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url, start=False)
    mounted.path.mkdir()
    link, farther = mounted.path.parent / "link", mounted.path.parent / "farther"
    link.symlink_to(mounted.path.name)
    farther.symlink_to(link)
    with detached(mounted) as daemon:
        made = mounted.vfsd("mount", str(farther), "--scope", mounted.scope)
        assert success(made) == f"scope {mounted.scope} mounted at {mounted.path}, 1 files\n"
        again = mounted.vfsd("mount", str(link), "--scope", mounted.scope)
        assert success(again) == f"scope {mounted.scope} is already mounted at {mounted.path}\n"
        assert success(daemon.mount()) == again.stdout
        assert len(mounts_at(mounted.path)) == 1
        (entry,) = statuses(mounted, mounted.path)
        assert entry["state"] == "mounted"
        assert success(mounted.vfsd("umount", str(farther))) == f"unmounted {mounted.path}\n"
        assert mounts_at(mounted.path) == []


def test_a_link_to_a_dead_mount_is_understood(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    link = mounted.path.parent / "link"
    link.symlink_to(mounted.path)
    mounted.kill()
    assert success(mounted.vfsd("umount", str(link))) == f"unmounted {mounted.path}\n"


def test_two_mounts_started_at_once_are_one(mount: MountFactory) -> None:
    """Whichever is first is held up while it is being made; the other finds it there in the end."""
    with RedisServer(redis_program()) as server:
        mounted = mount(server.url, "--store-timeout", "60", start=False)
        command = [sys.executable, "-m", "vfsd", "mount", str(mounted.path), "--scope", mounted.scope]
        command += ["--store-timeout", "60", "--log-file", str(mounted.log)]
        with detached(mounted):
            server.freeze()
            starting = [
                subprocess.Popen(command, env=mounted.environment, stdout=subprocess.PIPE, text=True) for _ in range(2)
            ]
            try:
                wait_until(lambda: _locks(mounted.path.parent / "run"), "the reservation")
            finally:
                server.thaw()
            said = sorted(process.communicate(timeout=60)[0] for process in starting)
            assert [process.returncode for process in starting] == [0, 0]
            assert said == [
                f"scope {mounted.scope} is already mounted at {mounted.path}\n",
                f"scope {mounted.scope} mounted at {mounted.path}, 1 files\n",
            ]
            assert len(mounts_at(mounted.path)) == 1
            assert _locks(mounted.path.parent / "run") == []
            success(mounted.vfsd("umount", str(mounted.path)))


def _locks(directory: Path) -> list[Path]:
    return list(directory.glob("*.lock"))


def test_a_mount_in_the_making_keeps_others_away(
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
        assert line == f"{mounted.path}: somebody is making a mount there; try again when that is done"
        reservation.end()
        success(daemon.mount())


def test_a_reservation_that_failed_leaves_nothing(tmp_path: Path) -> None:
    arguments = ["mount", str(tmp_path / "mnt"), "--scope=run", "--store", f"sqlite:{tmp_path}/db", "--must-exist"]
    for how in ([], ["--foreground"]):
        environment = _environment(VFSD_RUNTIME_DIR=str(tmp_path / "run"))
        result = run_vfsd(*arguments, *how, "--log-file", str(tmp_path / "log"), env=environment)
        assert result.returncode == 6
        assert list((tmp_path / "run").iterdir()) == []


def test_all_that_dead_daemons_left_is_cleaned_up(mount: MountFactory, redis_server: RedisServer) -> None:
    first = mount(redis_server.url)
    second = mount(redis_server.url)
    subprocess.run(["mount", "--bind", second.path, first.path], check=True)
    first.kill()
    second.kill()
    assert len(mounts_at(first.path)) == 2
    first.start()
    assert len(mounts_at(first.path)) == 1


# --- registrations


def test_a_successors_registration_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VFSD_RUNTIME_DIR", str(tmp_path / "run"))
    for pid, left in ((1, True), (os.getpid(), False)):
        registration = registrations.Registration("run", "/mnt", "memory:", pid, 0, "1")
        registrations.register(registration).touch()
        registrations.unregister("/mnt")
        assert (registrations.registered("/mnt") is not None, registrations.socket_path("/mnt").exists()) == (
            left,
            left,
        )


def test_unmounting_does_not_wait_for_a_stranger(mount: MountFactory, redis_server: RedisServer) -> None:
    """A dead daemon's number may be another process's by now: here it is this one's."""
    mounted = mount(redis_server.url)
    mounted.kill()
    (path,) = (mounted.path.parent / "run").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "pid": os.getpid()}))
    assert success(mounted.vfsd("umount", "--timeout", "1", str(mounted.path))) == f"unmounted {mounted.path}\n"


@pytest.mark.parametrize("kind", ["below a file", "too long", "relative", "of others"])
@pytest.mark.parametrize("how", [[], ["--foreground"]], ids=["detached", "foreground"])
def test_a_runtime_directory_that_cannot_be_used_is_refused(tmp_path: Path, kind: str, how: list[str]) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    place = {
        "below a file": f"{tmp_path}/file/run",
        "too long": f"{tmp_path}/{'x' * 100}",
        "relative": "run",
        "of others": f"{tmp_path}/open",
    }[kind]
    arguments = ["mount", str(tmp_path / "mnt"), "--scope=run", "--store", f"sqlite:{tmp_path}/db", *how]
    result = run_vfsd(*arguments, env=_environment(VFSD_RUNTIME_DIR=place))
    line = failure(result, 2 if kind == "relative" else 1)
    assert place in line
    assert "VFSD_RUNTIME_DIR" in line
    assert not (tmp_path / "mnt").exists()


# --- what a daemon inherits


@contextmanager
def _inheritable_lock(path: Path) -> Iterator[int]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.set_inheritable(file.fileno(), True)
        yield file.fileno()


def test_a_detached_daemon_keeps_nothing_of_its_starter(mount: MountFactory, redis_server: RedisServer) -> None:
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
