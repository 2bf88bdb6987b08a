"""How a mount ends: by a signal, or by any kind of umount. The daemon then leaves nothing behind."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from errno import ECONNABORTED, ENOTCONN
from pathlib import Path

import pytest

from tests.mount.other_process import other_process
from tests.support.cli import failure, mounts_at, statuses, success, summaries
from tests.support.files import opened
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.servers import RedisServer, redis_program


def _assert_ended_cleanly(mounted: Mounted) -> None:
    """Assert that the daemon ends with status 0: no mount, no registration, no owner, and the files are stored."""
    assert mounted.wait() == 0, mounted.log.read_text()
    assert mounts_at(mounted.path) == []
    assert list((mounted.path.parent / "run").iterdir()) == []
    (scope,) = [entry for entry in summaries(mounted) if entry["scope"] == mounted.scope]
    assert scope["owner"] is None
    mounted.start()
    assert (mounted.path / "file").read_bytes() == b"content"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_mount_and_frees_the_scope(
    mount: MountFactory, redis_server: RedisServer, number: signal.Signals
) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "file").write_bytes(b"content")
    with other_process("hold_open", mounted.path / "file") as holder:  # a signal does not wait for users
        assert holder.read_line() == "open"
        assert mounted.signal(number) == 0
    _assert_ended_cleanly(mounted)


@pytest.mark.parametrize("command", ["umount", "fusermount3 -u", "fusermount3 -u -z", "umount -l", "vfsd umount"])
def test_every_way_to_unmount_ends_the_daemon(mount: MountFactory, redis_server: RedisServer, command: str) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "file").write_bytes(b"content")
    if command == "vfsd umount":
        assert success(mounted.vfsd("umount", str(mounted.path))) == f"unmounted {mounted.path}\n"
        assert mounted.has_ended()
    else:
        subprocess.run([*command.split(), mounted.path], check=True)
    _assert_ended_cleanly(mounted)


def test_after_a_lazy_unmount_open_files_still_work(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    with opened(mounted.path / "file", os.O_RDWR | os.O_CREAT) as fd:
        subprocess.run(["umount", "-l", mounted.path], check=True)
        assert mounts_at(mounted.path) == []
        os.write(fd, b"content")
        assert os.pread(fd, 10, 0) == b"content"
        assert not mounted.has_ended()
    _assert_ended_cleanly(mounted)


def test_a_signal_waits_for_changes_in_flight(mount: MountFactory) -> None:
    with RedisServer(redis_program()) as server:
        mounted = mount(server.url, "--store-timeout", "60")
        server.freeze()
        outcomes = _start_mkdir(mounted.path / "directory")
        wait_until(lambda: _info(mounted)["pending"], "a change in flight")
        os.kill(mounted.pid, signal.SIGTERM)
        wait_until(lambda: "finishing what is in flight" in mounted.log.read_text(), "the end to begin")
        server.thaw()
        assert outcomes.get(timeout=60) is None
        assert mounted.wait() == 0
        mounted.start()
        assert (mounted.path / "directory").is_dir()
        assert mounted.stop() == 0


def test_a_second_signal_forces_the_end(mount: MountFactory) -> None:
    with RedisServer(redis_program()) as server:
        mounted = mount(server.url, "--store-timeout", "60")
        mounted.expected += ["could not release scope", "forced to end"]
        server.freeze()
        outcomes = _start_mkdir(mounted.path / "directory")
        wait_until(lambda: _info(mounted)["pending"], "a change in flight")
        os.kill(mounted.pid, signal.SIGTERM)
        wait_until(lambda: "finishing what is in flight" in mounted.log.read_text(), "the end to begin")
        assert mounted.signal(signal.SIGTERM) == 13
        error = outcomes.get(timeout=60)
        assert error is not None
        assert error.errno in {ECONNABORTED, ENOTCONN}
        assert mounts_at(mounted.path) == []
        server.thaw()


def _start_mkdir(directory: Path) -> queue.Queue[OSError | None]:
    """Make *directory* in a thread. Return a queue that gets None when it is made, or the error."""
    outcomes: queue.Queue[OSError | None] = queue.Queue()

    def make() -> None:
        try:
            directory.mkdir()
        except OSError as error:
            outcomes.put(error)
        else:
            outcomes.put(None)

    threading.Thread(target=make).start()
    return outcomes


def _info(mounted: Mounted) -> dict[str, int]:
    (entry,) = statuses(mounted, mounted.path)
    return entry


def test_an_error_of_a_busy_mount_names_the_process(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "file").write_bytes(b"content")
    (mounted.path / "directory").mkdir()
    for name, target in (("hold_open", "file"), ("sit_in", "directory"), ("map_and_write", "file")):
        with other_process(name, mounted.path / target, *(["c"] if name == "map_and_write" else [])) as holder:
            holder.read_line()
            line = failure(mounted.vfsd("umount", str(mounted.path)), 11)
            held = rf"{re.escape(str(mounted.path))} is busy: held by \S+ \({holder.pid}\); "
            assert re.match(held, line)
            assert line.endswith(f"vfsd umount --lazy {mounted.path}")
            assert len(mounts_at(mounted.path)) == 1
    success(mounted.vfsd("umount", str(mounted.path)))
    _assert_ended_cleanly(mounted)


def test_an_error_of_a_busy_mount_names_the_command_itself(mount: MountFactory, redis_server: RedisServer) -> None:
    """As in ``vfsd umount MNT >MNT/output``."""
    mounted = mount(redis_server.url)
    command = [sys.executable, "-m", "vfsd", "umount", str(mounted.path)]
    with (mounted.path / "output").open("wb") as output:
        done = subprocess.run(command, env=mounted.environment, stdout=output, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 11
    assert b"this command, which has a file of it open" in done.stderr


def test_an_error_of_a_busy_mount_names_a_mount_below_it(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    below = mounted.path / "below"
    below.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", below], check=True)
    try:
        line = failure(mounted.vfsd("umount", str(mounted.path)), 11)
    finally:
        subprocess.run(["umount", below], check=True)
    assert line.startswith(f"{mounted.path} is busy: held by the mount at {below}; ")


def test_a_busy_mount_can_be_detached(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "file").write_bytes(b"content")
    with other_process("hold_open", mounted.path / "file") as holder:
        assert holder.read_line() == "open"
        success(mounted.vfsd("umount", "--lazy", str(mounted.path)))
        assert mounts_at(mounted.path) == []
        assert not mounted.has_ended()
        holder.finish()
    _assert_ended_cleanly(mounted)


def test_umount_waits_for_the_daemon_to_end(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "file").write_bytes(b"content")
    with mounted.frozen():
        result = mounted.vfsd("umount", "--timeout", "0.1", str(mounted.path))
        line = failure(result, 13)
        assert line.startswith(f"unmounted, but the daemon (pid {mounted.pid}) has not ended, and does not answer: ")
        assert mounts_at(mounted.path) == []
    _assert_ended_cleanly(mounted)


def test_umount_removes_the_mount_of_a_dead_daemon(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    mounted.kill()
    assert len(mounts_at(mounted.path)) == 1
    success(mounted.vfsd("umount", str(mounted.path)))
    assert mounts_at(mounted.path) == []


def test_umount_refuses_what_is_not_a_vfsd_mount(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "directory").mkdir()
    for path, why in (
        (mounted.path / "directory", f"no vfsd mount there; it lies in the mount at {mounted.path}: name that"),
        (mounted.path.parent, "no vfsd mount there; vfsd status lists the mounts"),
        (Path("/proc"), "no vfsd mount there, but proc; vfsd status lists the mounts"),
    ):
        assert failure(mounted.vfsd("umount", str(path)), 12) == f"{path}: {why}"


def test_umount_finds_a_mount_whose_parent_was_renamed(mount: MountFactory, redis_server: RedisServer) -> None:
    """The mount moves with its parent directory, and is unmounted at its new path."""
    mounted = mount(redis_server.url, start=False)
    old, new = mounted.path.parent / "old", mounted.path.parent / "new"
    old.mkdir()
    mounted.path = old / "mnt"
    mounted.start()
    old.rename(new)
    mounted.path = new / "mnt"
    success(mounted.vfsd("umount", str(new / "mnt")))
    assert mounted.wait() == 0


def test_usr1_dumps_tasks_and_threads(mount: MountFactory) -> None:
    with RedisServer(redis_program()) as server:
        mounted = mount(server.url, "--store-timeout", "60")
        server.freeze()
        outcomes = _start_mkdir(mounted.path / "directory")
        wait_until(lambda: _info(mounted)["pending"], "a change in flight")
        os.kill(mounted.pid, signal.SIGUSR1)
        wait_until(lambda: "tasks:" in mounted.log.read_text(), "the tasks in the log")
        wait_until(lambda: "(most recent call first)" in mounted.log.read_text(), "the threads in the log")
        dumped = mounted.log.read_text()
        assert re.search(r"Daemon\._heed_signals: \S+/lifecycle\.py:\d+ in _heed_signals\n", dumped)
        assert re.search(r"pyfuse-\d+: \S+/vfsd/store/\S+\.py:\d+ in \w+\n", dumped)
        server.thaw()
        assert outcomes.get(timeout=60) is None
        assert mounted.stop() == 0
