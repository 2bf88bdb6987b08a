"""A signal at any step of a mount's life, before it is up and while it goes down: it ends cleanly, and holds nothing.

The store is one that another package offers: SQLite's, which signals its own daemon at a step of the test's choice.
"""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import mounts_at, success
from tests.support.mounted import PATIENCE, Mounted, MountFactory, run_vfsd

STORE = '''
import os, signal
from pathlib import Path
import trio
from vfsd.store.sqlite.store import SqliteStore


async def reach(step):
    """Take the signals that the test has for this step, and give the daemon every chance to act on them."""
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
        await reach("claim")
        return claim

    async def load(self, scope):
        await reach("load")
        async for batch in super().load(scope):
            yield batch
        await trio.sleep(0)

    async def release(self, claim):
        await reach("release")
        await super().release(claim)


def open_store(url, options):
    return Signalling(Path(url.partition(":")[2]), options)
'''


@pytest.fixture
def mounted(mount: MountFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mounted:
    """Return a mount of such a store, which is not started."""
    package = tmp_path / "package"
    about = package / "signalling-1.dist-info"
    about.mkdir(parents=True)
    (package / "signalling.py").write_text(STORE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: signalling\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[vfsd.stores]\nsignalling = signalling:open_store\n")
    monkeypatch.setenv("PYTHONPATH", os.fspath(package))
    return mount(f"signalling:{tmp_path / 'scopes.db'}", start=False)


def _foreground(mounted: Mounted) -> subprocess.CompletedProcess[str]:
    """Run a daemon to its end."""
    place = os.fspath(mounted.path)
    return run_vfsd("mount", "--foreground", place, "--scope", mounted.scope, env=mounted.environment)


def _is_free(mounted: Mounted) -> bool:
    """Whether nobody holds the scope, and nothing is mounted."""
    scopes = success(mounted.vfsd("scopes", "--store", mounted.store.replace("signalling:", "sqlite:")))
    return mounts_at(mounted.path) == [] and bool(re.search(rf"\b{mounted.scope} .* not mounted\n", scopes))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("step", ["check", "claim", "load"])
def test_a_signal_before_the_mount_is_up_ends_it_cleanly(
    mounted: Mounted, monkeypatch: pytest.MonkeyPatch, step: str, number: signal.Signals
) -> None:
    monkeypatch.setenv("VFSD_TEST_SIGNALS", f"{step} {number:d}")
    ended = _foreground(mounted)
    assert ended.returncode == 0, ended.stderr
    assert f"{number.name}: finishing what is in flight" in ended.stderr
    assert "Traceback" not in ended.stderr
    if step == "check":
        assert mounts_at(mounted.path) == []
    else:
        assert _is_free(mounted)


def test_usr1_dumps_before_the_mount_is_up(mounted: Mounted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VFSD_TEST_SIGNALS", f"check {signal.SIGUSR1:d} {signal.SIGTERM:d}")
    ended = _foreground(mounted)
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
def test_a_signal_does_not_wait_for_a_server_that_says_nothing(mount: MountFactory, number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mounted = mount(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", start=False)
        place = os.fspath(mounted.path)
        command = [sys.executable, "-m", "vfsd", "mount", "--foreground", place, "--scope", mounted.scope]
        command += ["--store-timeout", "3600"]
        with subprocess.Popen(command, env=mounted.environment, stderr=subprocess.PIPE, text=True) as daemon:
            try:
                with silent.accept()[0] as connected:
                    assert connected.recv(1)
                    daemon.send_signal(number)
                    said = daemon.communicate(timeout=PATIENCE)[1]
            finally:
                daemon.kill()
        assert daemon.returncode == 0, said
        assert "Traceback" not in said
        assert mounts_at(mounted.path) == []
