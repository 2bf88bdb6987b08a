"""A connection that breaks at any byte of a commit, in both directions: the commit is stored exactly once.

Afterwards memory and store are always equal.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from tests.faults.conftest import ProxyFactory
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.outcomes import DONE, OUTAGE, PendingCall, outcome, wait_for_log, wait_until_writable, write
from tests.support.proxy import COMMIT, Direction, Proxy
from tests.support.servers import RedisServer
from tests.support.store_comparison import assert_store_matches, commit_count

OLD, NEW = b"old content" * 3000, b"new content" * 3000


class Scene:
    """A mount that reaches *server* through *proxy*, with a file in it."""

    def __init__(self, mounted: Mounted, server: RedisServer, proxy: Proxy) -> None:
        self.mounted = mounted
        self.server = server
        self.proxy = proxy
        self.file = mounted.path / "file"
        self.file.write_bytes(OLD)

    def commits(self) -> int:
        return commit_count(self.server, self.mounted.scope)

    def write(self) -> None:
        write(self.file, NEW)

    def assert_store_matches(self) -> None:
        assert_store_matches(self.mounted, self.server.url)


class SceneMaker(Protocol):
    """Makes a scene with the given mount options."""

    def __call__(self, *options: str) -> Scene: ...


@pytest.fixture
def make_scene(mount: MountFactory, server: RedisServer, make_proxy: ProxyFactory) -> SceneMaker:
    """Return a function that makes a scene with the given mount options."""
    proxy = make_proxy(server)

    def make(*options: str) -> Scene:
        mounted = mount(proxy.url, *options)
        mounted.expected += OUTAGE
        return Scene(mounted, server, proxy)

    return make


def _sizes(scene: Scene) -> tuple[int, int]:
    """Return the lengths of a commit's request and of its replies, in bytes."""
    before = [(len(each.requested), each.replied) for each in scene.proxy.connections]
    scene.write()
    after = [(len(each.requested), each.replied) for each in scene.proxy.connections]
    grown = [(new[0] - old[0], new[1] - old[1]) for old, new in zip(before, after, strict=True)]
    return max(grown)


def test_a_commit_that_is_cut_at_any_byte_is_stored_exactly_once(make_scene: SceneMaker) -> None:
    scene = make_scene("--store-timeout", "60")
    request, reply = _sizes(scene)
    assert request > len(NEW)
    cuts = [
        (Direction.REQUEST, after)
        for after in (0, 1, len(COMMIT), 40, request // 2, request - 60, request - 1, request)
    ]
    cuts += [(Direction.REPLY, after) for after in (0, 1, reply // 2, reply - 1, reply)]
    for direction, after in cuts:
        write(scene.file, OLD)
        before = scene.commits()
        cut = scene.proxy.cut_commit(direction, after)
        scene.write()
        assert cut.done.wait(60), f"no cut after {after} bytes of the {direction.value}"
        assert scene.commits() == before + 1, f"cut after {after} bytes of the {direction.value}"
        scene.assert_store_matches()
    assert scene.file.read_bytes() == NEW


def test_a_change_of_names_that_is_cut_is_stored_exactly_once(make_scene: SceneMaker) -> None:
    scene = make_scene("--store-timeout", "60")
    root = scene.mounted.path
    calls: dict[str, Callable[[], object]] = {
        "mkdir": (root / "directory").mkdir,
        "rename": lambda: (root / "file").rename(root / "directory" / "file"),
        "link": lambda: os.link(root / "directory" / "file", root / "link"),
        "unlink": (root / "link").unlink,
    }
    for name, call in calls.items():
        for direction, after in ((Direction.REQUEST, 60), (Direction.REPLY, 0)):
            before = scene.commits()
            cut = scene.proxy.cut_commit(direction, after)
            assert outcome(call) == DONE, name
            assert cut.done.wait(60)
            assert scene.commits() == before + 1, name
            scene.assert_store_matches()
            _undo(root, name)
        assert outcome(call) == DONE


def _undo(root: Path, name: str) -> None:
    match name:
        case "mkdir":
            (root / "directory").rmdir()
        case "rename":
            (root / "directory" / "file").rename(root / "file")
        case "link":
            (root / "link").unlink()
        case "unlink":
            os.link(root / "directory" / "file", root / "link")


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
def test_a_commit_in_doubt_at_the_deadline_is_settled_later(make_scene: SceneMaker, stored: bool) -> None:
    scene = make_scene("--store-timeout", "1")
    (scene.mounted.path / "other").write_bytes(OLD)
    direction, after = (Direction.REPLY, 0) if stored else (Direction.REQUEST, 100)
    cut = scene.proxy.cut_commit(direction, after, lasts=True)
    writing = PendingCall(scene.write)
    assert cut.done.wait(60)
    with scene.proxy.refusing():
        assert writing.outcome() == "EIO"
        assert scene.file.read_bytes() == OLD
        assert outcome(scene.write) == "EIO"
        assert outcome(lambda: write(scene.mounted.path / "other", NEW)) == "EIO"
    wait_until_writable(scene.mounted.path)
    if stored:
        wait_for_log(scene.mounted, "turned out to be stored")
    wait_until(lambda: scene.file.read_bytes() == (NEW if stored else OLD), "memory to follow the store")
    scene.assert_store_matches()
    scene.write()
    assert scene.file.read_bytes() == NEW
    scene.assert_store_matches()


def test_new_and_removed_names_become_visible_when_their_doubt_is_settled(make_scene: SceneMaker) -> None:
    """The kernel has cached that one name is absent and that the other exists, so both must be invalidated."""
    scene = make_scene("--store-timeout", "1")
    for name, call in (("new", (scene.mounted.path / "new").mkdir), ("file", scene.file.unlink)):
        path = scene.mounted.path / name
        was_there = path.exists()
        cut = scene.proxy.cut_commit(Direction.REPLY, 0, lasts=True)
        calling = PendingCall(call)
        assert cut.done.wait(60)
        with scene.proxy.refusing():
            assert calling.outcome() == "EIO"
            assert path.exists() == was_there
        wait_until(partial(_differs, path, was_there), "the kernel to be notified")
        scene.assert_store_matches()


def _differs(path: Path, was_there: bool) -> bool:
    return path.exists() != was_there


def test_a_request_that_arrives_after_its_retry_does_nothing(make_scene: SceneMaker) -> None:
    """It was under way when the connection broke. Meanwhile its change was sent again, and other changes after it."""
    scene = make_scene("--store-timeout", "60")
    (old,) = (each for each in scene.proxy.connections if COMMIT in each.requested)
    old.hold()
    writing = PendingCall(lambda: write(scene.file, b"late"))
    assert old.holding.wait(60)
    old.cut_client()
    assert writing.outcome() == DONE
    scene.write()
    stored, replied = scene.commits(), old.replied
    old.release()
    wait_until(lambda: old.replied > replied, "the server to answer the late request")
    assert scene.commits() == stored
    assert scene.file.read_bytes() == NEW
    scene.write()
    scene.assert_store_matches()


def test_a_slow_store_makes_a_call_slow_without_an_error(make_scene: SceneMaker) -> None:
    scene = make_scene("--store-timeout", "60")
    (connection,) = (each for each in scene.proxy.connections if COMMIT in each.requested)
    connection.hold()
    appending = PendingCall(lambda: write(scene.file, NEW, len(OLD)))
    assert connection.holding.wait(60)
    assert not appending.has_returned
    assert scene.file.stat().st_size == len(OLD)
    connection.release()
    assert appending.outcome() == DONE
    assert scene.file.read_bytes() == OLD + NEW
    scene.assert_store_matches()
