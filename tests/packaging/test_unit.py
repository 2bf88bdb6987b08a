"""The systemd unit: systemd accepts it, and its restart rules match the exit statuses of vfsd."""

import shutil
import subprocess
from pathlib import Path

import pytest

from vfsd import errors

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "systemd" / "vfsd@.service"

PERMANENT = (
    errors.UsageError,
    errors.StoreRefused,
    errors.ScopeMissing,
    errors.ScopeDamaged,
    errors.FormatTooNew,
    errors.MountpointError,
    errors.FuseUnavailable,
)
"""Failures that a restart cannot fix: a person must change something first."""

TEMPORARY = (errors.StoreUnreachable, errors.StoreFull, errors.ScopeBusy)


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
    """Return the root of a system with systemd's own units and the programs that our unit names."""
    shutil.copytree("/lib/systemd/system", tmp_path / "usr/lib/systemd/system", symlinks=True)
    for program in ("usr/local/bin/vfsd", "usr/bin/fusermount3"):
        (tmp_path / program).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    return tmp_path


def verify(root: Path, text: str) -> tuple[int, str]:
    """Return the exit status and the output of ``systemd-analyze verify`` for the unit *text*."""
    unit = root / "etc/systemd/system" / UNIT.name
    unit.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text(text)
    command = ["systemd-analyze", "verify", "--man=no", f"--root={root}", "vfsd@run-42.service"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def test_systemd_finds_no_error(root: Path) -> None:
    assert verify(root, UNIT.read_text()) == (0, "")


def test_systemd_finds_an_error_in_a_wrong_unit(root: Path) -> None:
    """This proves that the test above can fail."""
    assert "Typo" in verify(root, UNIT.read_text().replace("Restart=", "Typo="))[1]
    status, complaint = verify(root, UNIT.read_text().replace("/usr/local/bin/vfsd mount", "/usr/local/bin/vfds mount"))
    assert status != 0
    assert "/usr/local/bin/vfds is not executable" in complaint


def test_a_restart_happens_only_after_temporary_failures() -> None:
    assert settings()["Restart"] == ["on-failure"]
    (prevented,) = settings()["RestartPreventExitStatus"]
    statuses = {int(word) for word in prevented.split()}
    assert statuses == {errors.EXIT_STATUS[failure] for failure in PERMANENT}
    assert not statuses & {errors.EXIT_STATUS[failure] for failure in TEMPORARY}


def test_the_unit_waits_for_ready_from_the_daemon() -> None:
    found = settings()
    assert (found["Type"], found["NotifyAccess"]) == (["notify"], ["main"])
    assert found["ExecStart"][0].split()[1:] == [
        *("mount", "--foreground", "/mnt/%i", "--scope", "%i", "$VFSD_OPTIONS"),
    ]


def test_the_mount_is_visible_in_the_whole_system() -> None:
    """Each of these would give the service a mount namespace of its own."""
    hiding = ("Private", "Protect", "ReadOnly", "ReadWrite", "Inaccessible", "Bind", "Root", "TemporaryFileSystem")
    assert not [name for name in settings() if name.startswith((*hiding, "DynamicUser", "MountFlags"))]
