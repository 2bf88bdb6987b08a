"""Listings of whole trees: as of one moment although the tree changes meanwhile, sorted, and limited."""

import errno
import json
import random
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest
import trio

from vfsd import Vfs
from vfsd.control.encoding import encoded_list
from vfsd.control.lines import unlimited
from vfsd.control.protocol import LINE_MAX
from vfsd.errors import FsError
from vfsd.files.resolve import PATH_MAX
from vfsd.files.walk import Listed, Listings
from vfsd.scope.hooks import Effects
from vfsd.tree.change import ROOT, Attributes, Change, PutInode
from vfsd.tree.plan_attributes import NewAttributes, plan_setattr
from vfsd.tree.plan_names import EntryKey, NewInode, plan_create, plan_link, plan_rename, plan_rmdir, plan_unlink
from vfsd.tree.tree import Tree

SECOND = 1_000_000_000


class Scope:
    """A tree and its listings. Each change has a later time than the one before."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.listings = Listings(self.tree)
        self._now_ns = SECOND
        root = Attributes(stat.S_IFDIR | 0o755, 2, 0, 0, 0, 0, 0, 0, 0)
        self.tree.apply(Change((PutInode(ROOT, root),), grows=True))

    def change(self, plan: Callable[[int], Change]) -> None:
        """Make a change as the pipeline does."""
        self._now_ns += SECOND
        change = plan(self._now_ns)
        if self.listings.active:
            self.listings.applying(Effects(change, change))
        self.tree.apply(change)

    def make(self, parent: int, name: bytes, *, directory: bool = False) -> int:
        """Create a file or a directory, and return its inode number."""
        ino = self.tree.allocate()
        new = NewInode((stat.S_IFDIR | 0o755) if directory else (stat.S_IFREG | 0o644), 0, 0)
        self.change(lambda now_ns: plan_create(self.tree, EntryKey(parent, name), ino, new, now_ns))
        return ino

    def now(self, top: int = ROOT) -> list[Listed]:
        """Return what a listing must contain, by the simplest way."""
        found, waiting = [], [(b"", top)]
        while waiting:
            prefix, directory = waiting.pop()
            for name, entry in self.tree.directory(directory).entries.items():
                attributes = self.tree.inodes[entry.ino].attributes
                found.append(Listed(prefix + name, entry.ino, attributes))
                if attributes.is_directory:
                    waiting.append((prefix + name + b"/", entry.ino))
        return sorted(found)


NAMES = [b"a", b"a-b", b"a.", b"a/"[:1] + b"0", b"b", b"\xff", b"\x01", b"aa"]


def _random_change(scope: Scope, choose: random.Random) -> None:
    """Make some change of names or attributes; one that is not possible makes none."""
    tree = scope.tree
    directories = [ino for ino, inode in tree.inodes.items() if inode.directory is not None and not inode.is_orphan]
    key, other = (EntryKey(choose.choice(directories), choose.choice(NAMES)) for _ in range(2))
    child = tree.child(*key)
    try:
        match choose.randrange(7):
            case 0 | 1:
                scope.make(*key, directory=choose.random() < 0.5)
            case 2:
                scope.change(lambda now_ns: plan_unlink(tree, key, now_ns))
            case 3:
                scope.change(lambda now_ns: plan_rmdir(tree, key, now_ns))
            case 4:
                scope.change(lambda now_ns: plan_rename(tree, key, other, choose.choice([0, 0, 2]), now_ns))
            case 5 if child is not None:
                scope.change(lambda now_ns: plan_link(tree, child.ino, other, now_ns))
            case 6 if child is not None:
                scope.change(lambda now_ns: plan_setattr(tree, child.ino, NewAttributes(mtime_ns=now_ns), now_ns))
    except FsError:
        pass


@pytest.mark.parametrize("seed", range(40))
def test_a_listing_is_as_of_one_moment_whatever_changes_while_it_is_made(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose, scope = random.Random(seed), Scope()
    monkeypatch.setattr("vfsd.files.names._SORTED_AT_ONCE", choose.choice((1, 2, 4_000)))
    for _ in range(150):
        _random_change(scope, choose)
    for _ in range(10):
        expected, found = scope.now(), []
        with scope.listings.listing(scope.tree.inode(ROOT), recursive=True) as entries:
            while batch := list(islice(entries, choose.randrange(1, 6))):
                found += [listed for listed in batch if listed is not None]
                for _ in range(choose.randrange(4)):
                    _random_change(scope, choose)
        assert found == expected
        assert not scope.listings.active


def test_a_time_that_looks_like_the_present_one_comes_with_the_present_attributes() -> None:
    """Otherwise a reader who compares milliseconds would take the old file for the present one."""
    scope = Scope()
    ino = scope.make(ROOT, b"file")
    before = scope.tree.inode(ino).attributes
    with scope.listings.listing(scope.tree.inode(ROOT), recursive=False) as entries:
        alike = NewAttributes(mtime_ns=before.mtime_ns + 1)
        scope.change(lambda now_ns: plan_setattr(scope.tree, ino, alike, now_ns))
        (listed,) = (each for each in entries if each is not None)
    assert listed.attributes.mtime_ns == before.mtime_ns + 1


def test_other_requests_are_served_while_a_large_directory_is_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfsd.files.names._SORTED_AT_ONCE", 10)
    scope = Scope()
    for number in random.Random(1).sample(range(10_000), 200):
        scope.make(ROOT, b"%d" % number)
    with scope.listings.listing(scope.tree.inode(ROOT), recursive=True) as entries:
        found = list(entries)
    assert [each for each in found if each is not None] == scope.now()
    assert found.count(None) >= 20


async def test_a_batch_ends_where_time_has_passed() -> None:
    """Otherwise all the pieces of a directory of a million names would be sorted before the first other request."""
    steps = 0

    def values() -> Iterator[str | None]:
        for _ in range(50):
            end = time.perf_counter() + 0.002
            while time.perf_counter() < end:
                pass
            yield None
        yield "last"

    async def count_steps() -> None:
        nonlocal steps
        while True:
            await trio.lowlevel.checkpoint()
            steps += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_steps)
        encoded = await encoded_list(values(), unlimited)
        nursery.cancel_scope.cancel()
    assert b"".join(encoded.parts) == b'["last"]'
    assert steps >= 49


@pytest.mark.parametrize("length", [1, 250, 255])
def test_what_lies_too_deep_to_be_named_is_not_built(length: int) -> None:
    scope = Scope()
    directory = ROOT
    for _ in range(4_500):
        scope.make(directory, b"f" * length)
        directory = scope.make(directory, b"d" * length, directory=True)
    with scope.listings.listing(scope.tree.inode(ROOT), recursive=True) as entries:
        paths = [each.path for each in entries if each is not None]
    longest = (PATH_MAX + 1) // (length + 1)
    assert len(paths) == 2 * longest
    assert max(map(len, paths)) == longest * (length + 1) - 1 <= PATH_MAX


def _endless(made: list[int]) -> Iterator[str]:
    while True:
        made.append(1)
        yield "x" * 4_000


async def test_an_answer_that_cannot_be_sent_is_not_built() -> None:
    made: list[int] = []
    with pytest.raises(FsError, match="ask for less at once") as caught:
        await encoded_list(_endless(made), unlimited)
    assert caught.value.errno == errno.EMSGSIZE
    assert len(made) < LINE_MAX // 4_000 + 1_000


async def test_an_answer_for_which_memory_has_no_room_is_not_built() -> None:
    def room(size: int) -> None:
        if size > 10 << 20:
            raise FsError(errno.ENOSPC)

    made: list[int] = []
    with pytest.raises(FsError) as caught:
        await encoded_list(_endless(made), room)
    assert caught.value.errno == errno.ENOSPC
    assert len(made) < 4_000


@pytest.mark.parametrize(
    "values", [[], [None], [None, "a"], ["a", None, "b"], [None] * 600 + ["a"] * 600 + [None] * 600]
)
async def test_a_list_is_encoded_without_its_gaps(values: list[str | None]) -> None:
    encoded = await encoded_list(iter(values), unlimited)
    text = b"".join(encoded.parts)
    assert json.loads(text) == [value for value in values if value is not None]
    assert len(text) == encoded.size


@contextmanager
def _moving(one: Path, other: Path) -> Iterator[None]:
    """Rename a file from *one* to *other* and back all the time."""
    stop = threading.Event()

    def move() -> None:
        while not stop.is_set():
            one.rename(other)
            other.rename(one)

    with ThreadPoolExecutor(1) as pool:
        moving = pool.submit(move)
        try:
            yield
        finally:
            stop.set()
        moving.result()


def test_a_mount_lists_a_file_that_moves_all_the_time_exactly_once(top: Path, vfs: Vfs) -> None:
    names = [f"n{number}" for number in range(1_500)]
    for name in names:
        (top / name).touch()
    first, last = "a moving", "z moving"
    (top / first).touch()
    with _moving(top / first, top / last):
        for _ in range(30):
            for paths in (vfs.list_all_paths(), vfs.readdir(recursive=True)):
                assert paths in ([first, *sorted(names)], [*sorted(names), last])
