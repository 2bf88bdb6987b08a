"""A reader never sees a change that could still be lost: memory changes only after the store has answered."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.servers import RedisServer, redis_program
from tests.support.syscalls import closing_fd
from tests.support.trees import Found, look_at

OLD, NEW = b"old text", b"new text, which is longer"


def test_memory_changes_after_the_store_and_a_crash_leaves_each_change_complete_or_absent(
    mount: MountFactory,
) -> None:
    with RedisServer(redis_program()) as server:
        mounted = mount(server.url, "--store-timeout", "60")
        before = _make_files(mounted.path)
        status_before = _status(mounted)
        server.freeze()
        threads = [threading.Thread(target=_ignore_os_error, args=(call,)) for call in _calls(mounted.path)]
        for thread in threads:
            thread.start()
        wait_until(lambda: _status(mounted)["pending"] == len(threads), "all changes to wait for the store")
        meanwhile = _status(mounted)
        mounted.kill()
        for thread in threads:
            thread.join()
        server.thaw()
        mounted.start()
        _check(before, look_at(os.fsencode(mounted.path)))
        mounted.clean_up()
    assert {key: meanwhile[key] for key in ("files", "bytes")} == {
        key: status_before[key] for key in ("files", "bytes")
    }


def _make_files(root: Path) -> Found:
    for name in ("created", "written", "removed", "moved"):
        (root / name).mkdir()
        (root / name / "file").write_bytes(OLD)
    return look_at(os.fsencode(root))


def _calls(root: Path) -> list[Callable[[], object]]:
    """Return changes without a common inode, so that all wait at the same time."""
    return [
        lambda: os.mkdir(root / "created" / "new"),
        lambda: _write(root / "written" / "file"),
        lambda: os.unlink(root / "removed" / "file"),
        lambda: os.rename(root / "moved" / "file", root / "moved" / "other"),
    ]


def _write(path: Path) -> None:
    with closing_fd(os.open(path, os.O_WRONLY)) as fd:
        os.write(fd, NEW)


def _ignore_os_error(call: Callable[[], object]) -> None:
    try:
        call()
    except OSError:  # ENOTCONN or ECONNABORTED: the next mount shows the outcome
        return


def _status(mounted: Mounted) -> dict[str, Any]:
    mounts: list[dict[str, Any]] = json.loads(mounted.vfsd("status", "--json").stdout)
    return next(status for status in mounts if status["mountpoint"] == os.fspath(mounted.path))


def _check(before: Found, after: Found) -> None:
    paths = after.facts.keys()
    assert paths - before.facts.keys() <= {b"created/new", b"moved/other"}
    assert before.facts.keys() - paths <= {b"removed/file", b"moved/file"}
    assert (b"moved/file" in paths) != (b"moved/other" in paths)
    assert after.facts[b"written/file"].content in (OLD, NEW)
    assert after.facts[b"created/file"] == before.facts[b"created/file"]
