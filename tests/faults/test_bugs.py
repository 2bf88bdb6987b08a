"""A bug in a handler: its caller gets EIO, the log gets a traceback, and the mount continues."""

from pathlib import Path

import pytest

from tests.support.mounted import MountFactory
from tests.support.outcomes import outcome
from tests.support.servers import RedisServer

_BUG = """
from vfsd.fuse.replies import Replies

show = Replies.show


def broken(self, inode):
    if inode.attributes.size == 6:
        raise OverflowError("a bug")
    return show(self, inode)


Replies.show = broken
"""
"""The daemon imports this first: its handlers fail for every file of six bytes."""


def test_a_bug_in_a_handler_fails_for_its_own_caller_only(
    server: RedisServer, mount: MountFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted = mount(server.url)
    for name in ("broken", "later"):
        (mounted.path / name).write_bytes(name.encode())
    assert mounted.stop() == 0
    (tmp_path / "sitecustomize.py").write_text(_BUG)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    mounted.expected += [r"failed by a bug; the caller gets EIO", "Traceback", "OverflowError"]
    mounted.start()
    (mounted.path / "five").write_bytes(b"other")
    for _ in range(3):
        assert outcome((mounted.path / "broken").stat) == "EIO"
    assert "Traceback" in mounted.log.read_text()
    assert (mounted.path / "later").read_bytes() == b"later"
    assert outcome((mounted.path / "broken").unlink) == "EIO"  # the kernel looks it up first
    assert mounted.stop() == 0
