"""A mount with ``--xattr`` as the upper layer of an overlay of Linux, as a container engine uses it."""

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer


@contextmanager
def _overlay(mounted: Mounted, lower: Path, at: Path) -> Iterator[Path]:
    """Mount an overlay of *lower* and the mount at *at*."""
    for directory in (mounted.path / "upper", mounted.path / "work", at):
        directory.mkdir(exist_ok=True)
    options = f"lowerdir={lower},upperdir={mounted.path / 'upper'},workdir={mounted.path / 'work'}"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, at], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", at], check=True)


def _make_lower(lower: Path) -> None:
    for name in ("changed", "renamed", "removed", "kept"):
        (lower / name).write_bytes(b"below: " + name.encode())
    for name in ("emptied", "moved"):
        (lower / name / "inner").mkdir(parents=True)
        (lower / name / "file").write_bytes(b"below")


def _work(top: Path) -> None:
    """Change, rename and remove what is below, and replace a directory by one that hides what was in it."""
    with (top / "changed").open("ab") as file:
        file.write(b", and above")
    (top / "changed").chmod(0o600)
    (top / "renamed").rename(top / "new name")
    (top / "removed").unlink()
    subprocess.run(["rm", "-r", top / "emptied"], check=True)
    (top / "emptied").mkdir()
    (top / "emptied" / "new").write_bytes(b"above")
    subprocess.run(["mv", top / "moved", top / "elsewhere"], check=True)


def _check(top: Path) -> None:
    assert sorted(os.listdir(top)) == ["changed", "elsewhere", "emptied", "kept", "new name"]
    assert (top / "changed").read_bytes() == b"below: changed, and above"
    assert stat.S_IMODE((top / "changed").stat().st_mode) == 0o600
    assert (top / "new name").read_bytes() == b"below: renamed"
    assert os.listdir(top / "emptied") == ["new"]
    assert sorted(os.listdir(top / "elsewhere")) == ["file", "inner"]


def test_an_overlay_above_a_mount_keeps_its_changes_after_a_crash(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path
) -> None:
    lower = tmp_path / "lower"
    lower.mkdir()
    _make_lower(lower)
    mounted = mount(redis_server.url, "--xattr", "-o", "suid,dev")
    with _overlay(mounted, lower, tmp_path / "top") as top:
        _work(top)
        _check(top)
        whiteout = (mounted.path / "upper" / "renamed").lstat()
        assert (stat.S_IFMT(whiteout.st_mode), whiteout.st_rdev) == (stat.S_IFCHR, 0)
        mounted.kill()
    mounted.start()
    with _overlay(mounted, lower, tmp_path / "top") as top:
        _check(top)
    assert (lower / "removed").exists()
