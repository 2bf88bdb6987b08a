"""A signal before the mount is ready, or while the daemon ends: the daemon ends cleanly and releases the scope.

The store comes from a package of the test. It is the SQLite store, and sends signals to its daemon at a chosen step.
"""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import mounts_at, offer_store, summaries
from tests.support.mounted import PATIENCE, Mounted, MountFactory, run_vfsd

STORE = '''
import os, signal
from pathlib import Path
import trio
from vfsd.store.sqlite.store import SqliteStore


async def reach(step):
    """Send the signals that the test chose for this step, and let the daemon act on them."""
    chosen, *numbers = os.environ["VFSD_TEST_SIGNALS"].split()
    if step == chosen:
        for number in numbers:
            os.kill(os.getpid(), int(number))
            for _ in range(100):
                await trio.lowlevel.cancel_shielded_checkpoint()


class Signalling(SqliteStore):
    async def check(self):
        await reach("check")
        return await super().check()

    async def claim(self, *arguments):
        claim = await super().claim(*arguments)
        release = claim.release

        async def signal_and_release():
            await reach("release")
            await release()

        claim.release = signal_and_release
        await reach("claim")
        return claim

    async def load(self, scope):
        await reach("load")
        async for batch in super().load(scope):
            yield batch
        await trio.sleep(0)


def open_store(url, options):
    return Signalling(Path(url.partition(":")[2]), options)
'''


@pytest.fixture
def mounted(mount: MountFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mounted:
    """Return a mount from the signalling store that is not started."""
    offer_store(tmp_path / "package", "signalling", STORE, monkeypatch)
    return mount(f"signalling:{tmp_path / 'scopes.db'}", start=False)


def _run_in_foreground(mounted: Mounted) -> subprocess.CompletedProcess[str]:
    """Run a daemon until it ends."""
    mountpoint = os.fspath(mounted.path)
    return run_vfsd("mount", "--foreground", mountpoint, "--scope", mounted.scope, env=mounted.environment)


def _is_free(mounted: Mounted) -> bool:
    """Return whether the scope has no owner, and nothing is mounted."""
    listed = summaries(mounted, "--store", mounted.store.replace("signalling:", "sqlite:"))
    return mounts_at(mounted.path) == [] and all(scope["owner"] is None for scope in listed)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("step", ["check", "claim", "load"])
def test_a_signal_before_the_mount_is_ready_ends_it_cleanly(
    mounted: Mounted, monkeypatch: pytest.MonkeyPatch, step: str, number: signal.Signals
) -> None:
    monkeypatch.setenv("VFSD_TEST_SIGNALS", f"{step} {number:d}")
    ended = _run_in_foreground(mounted)
    assert ended.returncode == 0, ended.stderr
    assert f"{number.name}: finishing what is in flight" in ended.stderr
    assert "Traceback" not in ended.stderr
    if step == "check":
        assert mounts_at(mounted.path) == []
    else:
        assert _is_free(mounted)


def test_usr1_dumps_tasks_before_the_mount_is_ready(mounted: Mounted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VFSD_TEST_SIGNALS", f"check {signal.SIGUSR1:d} {signal.SIGTERM:d}")
    ended = _run_in_foreground(mounted)
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"tasks:\n(.*\n)*.*Daemon\._heed_signals: ", ended.stderr)
    assert "(most recent call first)" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_scope_is_released_changes_nothing(
    mounted: Mounted, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("VFSD_TEST_SIGNALS", f"release {number:d}")
    mounted.start()
    (mounted.path / "file").write_bytes(b"content")
    subprocess.run(["umount", mounted.path], check=True)
    assert mounted.wait() == 0, mounted.log.read_text()
    assert f"{number.name}: finishing what is in flight" in mounted.log.read_text()
    assert _is_free(mounted)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_does_not_wait_for_a_server_that_does_not_answer(mount: MountFactory, number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mounted = mount(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", start=False)
        mountpoint = os.fspath(mounted.path)
        command = [sys.executable, "-m", "vfsd", "mount", "--foreground", mountpoint, "--scope", mounted.scope]
        command += ["--store-timeout", "3600"]
        with subprocess.Popen(command, env=mounted.environment, stderr=subprocess.PIPE, text=True) as daemon:
            try:
                with silent.accept()[0] as connected:
                    assert connected.recv(1)
                    daemon.send_signal(number)
                    stderr = daemon.communicate(timeout=PATIENCE)[1]
            finally:
                daemon.kill()
        assert daemon.returncode == 0, stderr
        assert "Traceback" not in stderr
        assert mounts_at(mounted.path) == []
