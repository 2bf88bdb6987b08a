"""What a user is told who may not open ``/dev/fuse`` on a host. The tests of the command line try it in a container."""

import errno
import os
import stat
from collections.abc import Sequence

import pytest

from vfsd.fuse.device import describe_rights, remedy_on_host

DAEMON_GROUP = 1
"""A group that every Debian has, and that is not root's."""
NOBODYS = 4_000_000_000


def _device(mode: int, uid: int, gid: int) -> os.stat_result:
    fields: Sequence[int] = (stat.S_IFCHR | mode, 1, 1, 1, uid, gid, 0, 0, 0, 0)
    return os.stat_result(fields)


ROOTS = "it belongs to root:root, mode 0600; "
GROUPS = "it belongs to root:daemon, mode 0660; add this user to group daemon and log in again, or "
READERS = "it belongs to root:daemon, mode 0640; "
NAMELESS = f"it belongs to {NOBODYS}:{NOBODYS}, mode 0600; "


@pytest.mark.parametrize(
    ("device", "told"),
    [
        (_device(0o600, 0, 0), ROOTS),
        (_device(0o640, 0, DAEMON_GROUP), READERS),
        (_device(0o660, 0, DAEMON_GROUP), GROUPS),
        (_device(0o600, NOBODYS, NOBODYS), NAMELESS),
    ],
    ids=["root's", "a group reads", "a group opens", "nobody's"],
)
def test_owner_and_mode_decide_what_to_change(device: os.stat_result, told: str) -> None:
    assert describe_rights(device) == f"{told}as root: chmod 0666 /dev/fuse"


def test_a_missing_device_and_other_faults_have_their_own_remedies() -> None:
    assert "modprobe fuse" in remedy_on_host(FileNotFoundError(errno.ENOENT, ""))
    assert "dmesg" in remedy_on_host(OSError(errno.ENODEV, ""))
