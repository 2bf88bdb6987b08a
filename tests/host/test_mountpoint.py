"""Paths as the command line resolves them, and whether they lie below a mountpoint."""

from pathlib import Path

import pytest

from vfsd.errors import MountpointError
from vfsd.host.mountpoint import absolute, lies_within


def test_paths_are_resolved_without_looking_below_the_mountpoint(tmp_path: Path) -> None:
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
