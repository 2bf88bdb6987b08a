"""Each mutating system call is one transaction, and no other call sends a command to the store.

The server counts the commands (INFO commandstats). The trace of the mount counts the requests.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from tests.support.mounted import MountFactory
from tests.support.servers import RedisServer, redis_program
from tests.support.syscalls import closing_fd, renameat2
from vfsd.tree.plan_names import RENAME_EXCHANGE

REQUEST = re.compile(r" DEBUG vfsd\.fuse\.trace: (\w+)")
HOUSEKEEPING = ("info", "config|get", "eval", "set", "ping")
"""What the daemon sends besides commits: it measures the free memory of the server, and it renews its lease."""


class Counting:
    """Counts the commands of a server and the requests to a mount."""

    def __init__(self, client: redis.Redis, log: Path) -> None:
        self._client = client
        self._log = log

    def commands(self) -> Counter[str]:
        """Return how often the server has executed each command, without housekeeping."""
        stats: dict[str, dict[str, int]] = self._client.info("commandstats")
        calls = {name.removeprefix("cmdstat_"): numbers["calls"] for name, numbers in stats.items()}
        return Counter({name: count for name, count in calls.items() if name not in HOUSEKEEPING})

    def requests(self) -> Counter[str]:
        """Return how often the kernel has sent each request.

        Release is left out: no system call waits for it, so the kernel may send it at any time.
        """
        return Counter(name for name in REQUEST.findall(self._log.read_text()) if name != "release")

    def transactions(self, call: Callable[[], object]) -> int:
        """Return how many transactions *call* needs. It must not write in any other way."""
        before = self.commands()
        call()
        new = self.commands() - before
        assert new.pop("multi", 0) == new.get("exec", 0)
        count = new.pop("exec", 0)
        writes = {name: calls for name, calls in new.items() if name in {"watch", "hget"}}
        assert all(calls == count for calls in writes.values()), (
            new
        )  # the fence of the next commit, in the same round trip
        assert bool(count) == bool(new), new
        return count


@pytest.fixture
def counting(mount: MountFactory) -> Iterator[tuple[Path, Counting]]:
    """Yield a mount on a private server, and its counters."""
    with RedisServer(redis_program()) as server, server.client() as client:
        mounted = mount(server.url, "--xattr", "--debug")
        yield mounted.path, Counting(client, mounted.log)
        mounted.clean_up()


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    with closing_fd(os.open(path, flags, 0o644)) as fd:
        yield fd


def test_every_mutating_call_is_one_transaction(counting: tuple[Path, Counting]) -> None:
    root, counted = counting
    a, b, link = root / "a", root / "b", root / "link"
    with opened(a, os.O_CREAT | os.O_RDWR) as fd, opened(b, os.O_CREAT | os.O_RDWR):
        calls: dict[str, Callable[[], object]] = {
            "create": lambda: os.close(os.open(root / "c", os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
            "write": lambda: os.write(fd, b"some text"),
            "a large write": lambda: os.pwrite(fd, bytes(range(256)) * 4096, 0),
            "truncate": lambda: os.ftruncate(fd, 5),
            "open to truncate, and write": lambda: _rewrite(a),
            "chmod": lambda: os.fchmod(fd, 0o600),
            "chown": lambda: os.fchown(fd, os.getuid(), os.getgid()),
            "utimens": lambda: os.utime(a, ns=(1, 2)),
            "setxattr": lambda: os.setxattr(a, "user.key", b"value"),
            "removexattr": lambda: os.removexattr(a, "user.key"),
            "link": lambda: os.link(a, link),
            "rename": lambda: os.rename(link, root / "renamed"),
            "rename over": lambda: os.rename(root / "c", root / "renamed"),
            "exchange": lambda: renameat2(os.fsencode(a), os.fsencode(b), RENAME_EXCHANGE),
            "symlink": lambda: os.symlink("a", link),
            "mkdir": lambda: os.mkdir(root / "d"),
            "mkfifo": lambda: os.mkfifo(root / "fifo"),
            "rmdir": lambda: os.rmdir(root / "d"),
            "unlink": lambda: os.unlink(root / "renamed"),
        }
        counts = {name: counted.transactions(call) for name, call in calls.items()}
    assert counts == dict.fromkeys(calls, 1)


def test_no_other_call_sends_a_command_to_the_store(counting: tuple[Path, Counting]) -> None:
    root, counted = counting
    a, orphan = root / "a", root / "orphan"
    a.write_bytes(b"text")
    os.setxattr(a, "user.key", b"value")
    with opened(a, os.O_RDWR) as fd, opened(orphan, os.O_CREAT | os.O_RDWR) as orphaned:
        os.unlink(orphan)
        calls: dict[str, Callable[[], object]] = {
            "open, read, close": a.read_bytes,
            "pread past the end": lambda: os.pread(fd, 10, 100),
            "stat": lambda: os.stat(a),
            "stat of a missing name": (root / "absent").exists,
            "readdir": lambda: os.listdir(root),
            "statfs": lambda: os.statvfs(root),
            "getxattr": lambda: os.getxattr(a, "user.key"),
            "fsync": lambda: os.fsync(fd),
            "open for writing and close": lambda: os.close(os.open(a, os.O_RDWR)),
            "an empty write": lambda: os.write(fd, b""),
            "a write to a file without a name": lambda: os.write(orphaned, b"text"),
            "a failing mkdir": lambda: _fail_mkdir(a),
        }
        counts = {name: counted.transactions(call) for name, call in calls.items()}
    assert counts == dict.fromkeys(calls, 0)


def _rewrite(path: Path) -> None:
    with opened(path, os.O_WRONLY | os.O_TRUNC) as fd:
        os.write(fd, b"new text")


def _fail_mkdir(path: Path) -> None:
    with pytest.raises(FileExistsError):
        os.mkdir(path)


def test_the_requests_of_a_small_file_and_of_an_append(mount: MountFactory) -> None:
    with RedisServer(redis_program()) as server, server.client() as client:
        mounted = mount(server.url, "--debug")
        counted = Counting(client, mounted.log)
        (mounted.path / "first").write_bytes(b"text")  # at first the kernel asks once for flush and for xattrs

        def create() -> None:
            with opened(mounted.path / "small", os.O_CREAT | os.O_EXCL | os.O_WRONLY) as fd:
                os.write(fd, b"text")

        before = counted.requests()
        assert counted.transactions(create) == 2
        created = counted.requests() - before
        with opened(mounted.path / "small", os.O_WRONLY | os.O_APPEND) as fd:
            before = counted.requests()
            assert counted.transactions(lambda: os.write(fd, b"more")) == 1
            appended = counted.requests() - before
        print(f"create of a small file: {dict(created)}, 2 commits; append: {dict(appended)}, 1 commit")
        mounted.clean_up()
    assert created <= Counter(getattr=1, lookup=1, create=1, write=1)
    assert appended == Counter(write=1)
