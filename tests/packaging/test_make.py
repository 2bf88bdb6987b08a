"""The Makefile's commands for a new user: ``make mount``, ``make umount`` and the others, and their output."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.checkout import Checkout
from vfsd.host import mountpoint as mountpoints


class Make:
    """``make`` in a checkout. The daemon's log is outside the checkout."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self.root = checkout.path
        self.log = checkout.machine / "log"

    def __call__(self, target: str, *variables: str) -> subprocess.CompletedProcess[str]:
        """Run ``make TARGET VARIABLE=…``."""
        return self._checkout.run("make", "--no-print-directory", target, f"OPTIONS=--log-file={self.log}", *variables)

    def succeed(self, target: str, *variables: str) -> list[str]:
        """Run a target that must succeed, and return its output lines."""
        result = self(target, *variables)
        assert result.returncode == 0, result.stderr
        return result.stdout.splitlines()

    def clean_up(self) -> list[str]:
        """Unmount everything below the checkout. Return the warnings in the log."""
        for mount in mountpoints.mounts():
            if mount.mountpoint.startswith(f"{self.root}/"):
                subprocess.run(["umount", "-l", mount.mountpoint], check=True)
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if " WARNING " in line or " ERROR " in line]


@pytest.fixture
def make(checkout: Checkout) -> Iterator[Make]:
    checkout.install_all()
    make = Make(checkout)
    try:
        yield make
    finally:
        warnings = make.clean_up()
    assert warnings == []


def test_mount_twice_then_umount(make: Make) -> None:
    root = make.root
    first = make.succeed("mount")
    assert first[0] == f"scope demo mounted at {root}/mnt, 0 files"
    assert first[1] == "Try:"
    assert first[-2].split() == ["Unmount:", "make", "umount"]
    (root / "mnt" / "greeting").write_text("hello\n")
    again = make.succeed("mount")
    assert again[0] == f"scope demo is already mounted at {root}/mnt"
    assert again[1:] == first[1:]
    assert make.succeed("umount") == [f"unmounted {root}/mnt"]
    assert list((root / "mnt").iterdir()) == []


def test_the_suggested_command_works(make: Make) -> None:
    command = next(line for line in make.succeed("mount") if "greeting" in line)
    printed = subprocess.run(["sh", "-c", command], cwd=make.root, capture_output=True, text=True, check=True).stdout
    assert printed.startswith("hello\n")
    assert (make.root / "mnt" / "greeting").read_text() == "hello\n"


def test_the_files_come_back_from_the_store_in_the_checkout(make: Make) -> None:
    make.succeed("mount")
    (make.root / "mnt" / "greeting").write_text("hello\n")
    make.succeed("umount")
    assert (make.root / "vfsd.db").exists()
    assert make.succeed("mount")[0].endswith("1 file")
    assert (make.root / "mnt" / "greeting").read_text() == "hello\n"


def test_another_mountpoint_scope_and_store(make: Make, tmp_path: Path) -> None:
    variables = ["MNT=mnt/a directory", "SCOPE=run-42", f"STORE=sqlite:{tmp_path}/other.db"]
    (make.root / "mnt").mkdir()
    printed = make.succeed("mount", *variables)
    assert printed[0] == f"scope run-42 mounted at {make.root}/mnt/a directory, 0 files"
    assert (tmp_path / "other.db").exists()
    assert not (make.root / "vfsd.db").exists()
    again = "MNT='mnt/a directory' SCOPE='run-42' STORE=…"
    assert f"make umount {again}" in printed[-2]
    assert f"make mount {again}" in printed[-1]
    assert make.succeed("umount", variables[0]) == [f"unmounted {make.root}/mnt/a directory"]


def test_a_password_in_the_store_is_not_printed(make: Make) -> None:
    result = make("mount", "STORE=redis://:s3cr3t@127.0.0.1:1/0")
    assert result.returncode != 0
    assert "127.0.0.1:1" in result.stderr
    assert "s3cr3t" not in result.stderr + result.stdout + make.log.read_text()
    make.log.unlink()  # the error in it is intended


def test_clean_unmounts_and_keeps_the_store(make: Make) -> None:
    make.succeed("mount")
    make.succeed("clean")
    assert mountpoints.mount_at(os.fspath(make.root / "mnt")) is None
    assert not (make.root / ".venv").exists()
    assert (make.root / "vfsd.db").exists()


def test_umount_without_a_mount_is_an_error(make: Make) -> None:
    result = make("umount")
    assert result.returncode != 0
    assert f"vfsd: {make.root}/mnt: no vfsd mount there; vfsd status lists the mounts" in result.stderr.splitlines()


def test_help_names_every_target_and_changes_nothing(make: Make) -> None:
    targets = set(re.findall(r"^([a-z]+):", (make.root / "Makefile").read_text(), re.MULTILINE))
    printed = "\n".join(make.succeed("help"))
    assert {"help", "mount", "umount", "test", "check", "bench", "clean"} <= targets
    assert all(f"make {target}\t" in printed for target in targets)
    assert not (make.root / ".venv").exists()
