"""The systemd unit: clean by systemd's own judgement, and in step with the exit statuses of vfsd."""

import shutil
import subprocess
from pathlib import Path

import pytest

from vfsd import errors

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "systemd" / "vfsd@.service"

IN_VAIN = (
    errors.UsageError,
    errors.StoreRefused,
    errors.ScopeMissing,
    errors.ScopeDamaged,
    errors.FormatTooNew,
    errors.MountpointError,
    errors.FuseUnavailable,
)
"""Failures that no restart mends: a person has to change something first."""

WORTH_A_TRY = (errors.StoreUnreachable, errors.StoreFull, errors.ScopeBusy)


def settings() -> dict[str, list[str]]:
    """Return the settings of the unit by name."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the root of a system that has systemd's own units, and the programs that ours names."""
    shutil.copytree("/lib/systemd/system", tmp_path / "usr/lib/systemd/system", symlinks=True)
    for program in ("usr/local/bin/vfsd", "usr/bin/fusermount3"):
        (tmp_path / program).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    return tmp_path


def verify(root: Path, text: str) -> tuple[int, str]:
    """Return what ``systemd-analyze verify`` makes of the unit *text*: status, and what it complains about."""
    place = root / "etc/systemd/system" / UNIT.name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", f"--root={root}", "vfsd@run-42.service"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def test_systemd_finds_nothing_to_complain_about(root: Path) -> None:
    assert verify(root, UNIT.read_text()) == (0, "")


def test_systemd_would_complain(root: Path) -> None:
    """The verdict above is worth something: a slip is seen."""
    assert "Typo" in verify(root, UNIT.read_text().replace("Restart=", "Typo="))[1]
    status, complaint = verify(root, UNIT.read_text().replace("/usr/local/bin/vfsd mount", "/usr/local/bin/vfds mount"))
    assert status != 0
    assert "/usr/local/bin/vfds is not executable" in complaint


def test_a_restart_is_tried_where_it_may_help() -> None:
    assert settings()["Restart"] == ["on-failure"]
    (prevented,) = settings()["RestartPreventExitStatus"]
    statuses = {int(word) for word in prevented.split()}
    assert statuses == {errors.EXIT_STATUS[failure] for failure in IN_VAIN}
    assert not statuses & {errors.EXIT_STATUS[failure] for failure in WORTH_A_TRY}


def test_it_waits_for_ready_from_the_daemon_itself() -> None:
    found = settings()
    assert (found["Type"], found["NotifyAccess"]) == (["notify"], ["main"])
    assert found["ExecStart"][0].split()[1:] == [
        *("mount", "--foreground", "/mnt/%i", "--scope", "%i", "$VFSD_OPTIONS"),
    ]


def test_its_mount_is_seen_by_everybody() -> None:
    """Each of these would give the service a mount namespace of its own."""
    hiding = ("Private", "Protect", "ReadOnly", "ReadWrite", "Inaccessible", "Bind", "Root", "TemporaryFileSystem")
    assert not [name for name in settings() if name.startswith((*hiding, "DynamicUser", "MountFlags"))]
