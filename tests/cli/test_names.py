"""Names that are not text: mountpoints with any bytes, and processes with any name.

The kernel's tables are bytes. For Python a line ends at U+0085 and U+2028 too, and not every byte is UTF-8.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cli import detached, failure, statuses, success
from tests.support.mounted import Mounted, MountFactory
from tests.support.names import ODD
from tests.support.servers import RedisServer
from vfsd.client.vfs import connect
from vfsd.host import mount_table
from vfsd.host.processes import process_name
from vfsd.printable import printable
from vfsd.store.owner import this_process


def _placed(mounted: Mounted, name: bytes) -> Mounted:
    """Return *mounted*, which is not started, at a mountpoint called *name*."""
    mounted.path = mounted.path.parent / os.fsdecode(name)
    return mounted


def _assert_printable(printed: str) -> None:
    assert all(line.isprintable() for line in printed.split("\n")), printed


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_a_mountpoint_may_have_any_name(mount: MountFactory, redis_server: RedisServer, name: bytes) -> None:
    mounted = _placed(mount(redis_server.url, start=False), name)
    shown = printable(str(mounted.path))
    with detached(mounted) as daemon:
        first = daemon.mount()
        assert success(first) == f"scope {mounted.scope} mounted at {shown}, 0 files\n"
        _assert_printable(first.stderr)
        assert success(daemon.mount()) == f"scope {mounted.scope} is already mounted at {shown}\n"
        listed = success(mounted.vfsd("status"))
        assert shown in listed
        _assert_printable(listed)
        (entry,) = statuses(mounted, mounted.path)  # finds the exact name in the JSON
        assert entry["state"] == "mounted"
        owners = success(mounted.vfsd("scopes"))
        assert f"  {shown}  -\n" in owners
        _assert_printable(owners)
        assert success(mounted.vfsd("umount", str(mounted.path))) == f"unmounted {shown}\n"
    assert f"mounted at {shown}, 0 files\n" in mounted.log.read_text()


@pytest.mark.parametrize("name", ODD[:2], ids=ascii)
def test_a_client_finds_such_a_mountpoint(
    mount: MountFactory, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, name: bytes
) -> None:
    mounted = _placed(mount(redis_server.url, start=False), name)
    mounted.start()
    monkeypatch.setenv("VFSD_RUNTIME_DIR", mounted.environment["VFSD_RUNTIME_DIR"])
    with connect(mounted.path) as vfs:
        assert vfs.info()["mountpoint"] == str(mounted.path)
    assert mounted.stop() == 0


@contextmanager
def _tmpfs(path: Path) -> Iterator[None]:
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", b"no\xffne", path], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", path], check=True)


def test_foreign_mounts_may_have_any_name(mount: MountFactory, redis_server: RedisServer, tmp_path: Path) -> None:
    mounted = mount(redis_server.url, start=False)
    others = [tmp_path / os.fsdecode(name) for name in ODD]
    with ExitStack() as stack:
        for other in others:
            stack.enter_context(_tmpfs(other))
            found = mount_table.mount_at(str(other))
            assert found is not None
            assert (found.fstype, os.fsencode(found.source)) == ("tmpfs", b"no\xffne")
        with detached(mounted) as daemon:
            success(daemon.mount())
            assert statuses(mounted, mounted.path)[0]["state"] == "mounted"
            success(mounted.vfsd("umount", str(mounted.path)))
            line = failure(mounted.vfsd("umount", str(others[0])), 12)
            assert line == f"{printable(str(others[0]))}: no vfsd mount there, but tmpfs; vfsd status lists the mounts"


_HOLD = """
import os, sys
open("/proc/self/comm", "wb").write(os.fsencode(sys.argv[2]))
os.chdir(sys.argv[1])
print("there", flush=True)
sys.stdin.read()
"""


@contextmanager
def _process_named(name: bytes, directory: Path) -> Iterator[int]:
    """Run a process called *name* in *directory*."""
    command = [os.fsencode(part) for part in (sys.executable, "-c", _HOLD, str(directory))] + [name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        yield process.pid


def test_processes_that_keep_a_mount_busy_may_have_any_name(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    with ExitStack() as stack:
        pids = {
            stack.enter_context(_process_named(name, mounted.path)): name
            for name in (*ODD, "ééééééééé".encode(), b") R 1 1")
        }
        line = failure(mounted.vfsd("umount", str(mounted.path)), 11)
        for pid, name in pids.items():
            assert os.fsencode(process_name(pid)) == name[:15] + f" ({pid})".encode()
            assert printable(process_name(pid)) in line
        _assert_printable(line)
    success(mounted.vfsd("umount", str(mounted.path)))
    assert mounted.wait() == 0


def test_an_owner_with_the_pid_of_a_process_with_any_name_is_found_to_be_gone(tmp_path: Path) -> None:
    with _process_named("ééééééééé".encode(), tmp_path) as pid:
        assert replace(this_process("/mnt"), pid=pid, started=1).is_gone()


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_what_is_printed_can_be_read_back_by_a_shell(name: bytes) -> None:
    shown = printable(os.fsdecode(name))
    assert shown.isprintable()
    raw = re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes([int(match[1], 16)]), shown.encode())
    assert raw == name
