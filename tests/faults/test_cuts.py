"""A connection that breaks at any byte of a commit, in either direction: the commit is made exactly once.

However it ends, memory and store agree afterwards.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from tests.faults.agreement import assert_agreement, commits
from tests.faults.calls import DONE, OUTAGE, Pending, outcome, wait_for_log, wait_until_writable, write
from tests.faults.conftest import Connector
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.proxy import COMMIT, Proxy, Way
from tests.support.servers import RedisServer

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
        return commits(self.server, self.mounted.scope)

    def write(self) -> None:
        write(self.file, NEW)

    def assert_agreement(self) -> None:
        assert_agreement(self.mounted, self.server.url)


class SceneMaker(Protocol):
    """Makes a scene with the given mount options."""

    def __call__(self, *options: str) -> Scene: ...


@pytest.fixture
def make_scene(mount: MountFactory, server: RedisServer, proxied: Connector) -> SceneMaker:
    """Return a maker of scenes, which takes the mount's options."""
    proxy = proxied(server)

    def make(*options: str) -> Scene:
        mounted = mount(proxy.url, *options)
        mounted.expected += OUTAGE
        return Scene(mounted, server, proxy)

    return make


def _sizes(scene: Scene) -> tuple[int, int]:
    """Return the lengths of a commit's request and of the replies to it."""
    before = [(len(each.requested), each.replied) for each in scene.proxy.connections]
    scene.write()
    after = [(len(each.requested), each.replied) for each in scene.proxy.connections]
    grown = [(new[0] - old[0], new[1] - old[1]) for old, new in zip(before, after, strict=True)]
    return max(grown)


def test_a_commit_cut_anywhere_is_made_exactly_once(make_scene: SceneMaker) -> None:
    scene = make_scene("--store-timeout", "60")
    request, reply = _sizes(scene)
    assert request > len(NEW)
    places = [
        (Way.REQUEST, after) for after in (0, 1, len(COMMIT), 40, request // 2, request - 60, request - 1, request)
    ]
    places += [(Way.REPLY, after) for after in (0, 1, reply // 2, reply - 1, reply)]
    for way, after in places:
        write(scene.file, OLD)
        before = scene.commits()
        cut = scene.proxy.cut_commit(way, after)
        scene.write()
        assert cut.done.wait(60), f"no cut after {after} bytes of the {way.value}"
        assert scene.commits() == before + 1, f"cut after {after} bytes of the {way.value}"
        scene.assert_agreement()
    assert scene.file.read_bytes() == NEW


def test_names_cut_anywhere_are_changed_exactly_once(make_scene: SceneMaker) -> None:
    scene = make_scene("--store-timeout", "60")
    root = scene.mounted.path
    calls: dict[str, Callable[[], object]] = {
        "mkdir": (root / "directory").mkdir,
        "rename": lambda: (root / "file").rename(root / "directory" / "file"),
        "link": lambda: os.link(root / "directory" / "file", root / "link"),
        "unlink": (root / "link").unlink,
    }
    for name, call in calls.items():
        for way, after in ((Way.REQUEST, 60), (Way.REPLY, 0)):
            before = scene.commits()
            cut = scene.proxy.cut_commit(way, after)
            assert outcome(call) == DONE, name
            assert cut.done.wait(60)
            assert scene.commits() == before + 1, name
            scene.assert_agreement()
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
def test_a_commit_whose_fate_is_unknown_at_the_deadline_is_settled_later(make_scene: SceneMaker, stored: bool) -> None:
    scene = make_scene("--store-timeout", "1")
    (scene.mounted.path / "other").write_bytes(OLD)
    way, after = (Way.REPLY, 0) if stored else (Way.REQUEST, 100)
    cut = scene.proxy.cut_commit(way, after, lasts=True)
    writing = Pending(scene.write)
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
    scene.assert_agreement()
    scene.write()
    assert scene.file.read_bytes() == NEW
    scene.assert_agreement()


def test_new_and_removed_names_whose_fate_was_unknown_become_visible(make_scene: SceneMaker) -> None:
    """The kernel had cached that one name is absent, and that the other is there: it is told."""
    scene = make_scene("--store-timeout", "1")
    for name, call in (("new", (scene.mounted.path / "new").mkdir), ("file", scene.file.unlink)):
        path = scene.mounted.path / name
        was_there = path.exists()
        cut = scene.proxy.cut_commit(Way.REPLY, 0, lasts=True)
        calling = Pending(call)
        assert cut.done.wait(60)
        with scene.proxy.refusing():
            assert calling.outcome() == "EIO"
            assert path.exists() == was_there
        wait_until(partial(_differs, path, was_there), "the kernel to be told")
        scene.assert_agreement()


def _differs(path: Path, was_there: bool) -> bool:
    return path.exists() != was_there


def test_a_request_that_arrives_after_it_was_given_up_does_nothing(make_scene: SceneMaker) -> None:
    """It was on its way when the connection broke; by then its change has been sent anew, and others after it."""
    scene = make_scene("--store-timeout", "60")
    (before,) = (each for each in scene.proxy.connections if COMMIT in each.requested)
    before.hold()
    writing = Pending(lambda: write(scene.file, b"late"))
    assert before.holding.wait(60)
    before.strand()
    assert writing.outcome() == DONE
    scene.write()
    stored, replied = scene.commits(), before.replied
    before.release()
    wait_until(lambda: before.replied > replied, "the server to answer the late request")
    assert scene.commits() == stored
    assert scene.file.read_bytes() == NEW
    scene.write()
    scene.assert_agreement()


def test_a_slow_store_makes_a_slow_call_and_no_error(make_scene: SceneMaker) -> None:
    scene = make_scene("--store-timeout", "60")
    (line,) = (each for each in scene.proxy.connections if COMMIT in each.requested)
    line.hold()
    appending = Pending(lambda: write(scene.file, NEW, len(OLD)))
    assert line.holding.wait(60)
    assert not appending.is_over
    assert scene.file.stat().st_size == len(OLD)
    line.release()
    assert appending.outcome() == DONE
    assert scene.file.read_bytes() == OLD + NEW
    scene.assert_agreement()
