"""A bug in a handler, or an invalid record: its caller gets EIO, the log gets a traceback, and the mount continues."""

from tests.support.mounted import MountFactory
from tests.support.outcomes import outcome
from tests.support.servers import RedisServer
from vfsd.store.records import pack_inode, unpack_inode


def test_a_record_that_the_kernel_cannot_take_fails_for_its_own_caller_only(
    server: RedisServer, mount: MountFactory
) -> None:
    """The size of a file is too large for stat(2). Hydration accepts it, but the handler fails."""
    mounted = mount(server.url)
    for name in ("before", "broken", "later"):
        (mounted.path / name).write_bytes(b"content")
    ino = (mounted.path / "broken").stat().st_ino
    assert mounted.stop() == 0
    with server.client() as client:
        key = f"vfsd:{{{mounted.scope}}}:inodes"
        record = client.hget(key, str(ino))
        assert isinstance(record, bytes)
        client.hset(key, str(ino), pack_inode(unpack_inode(record)._replace(size=2**64 - 1)))
    mounted.expected += [r"failed by a bug; the caller gets EIO", "Traceback", "OverflowError"]
    mounted.start()
    for _ in range(3):
        assert outcome((mounted.path / "broken").stat) == "EIO"
    assert "Traceback" in mounted.log.read_text()
    assert (mounted.path / "before").read_bytes() == b"content"
    (mounted.path / "new").write_bytes(b"content")
    assert outcome((mounted.path / "broken").unlink) == "EIO"  # the kernel looks it up first
    assert mounted.stop() == 0
