"""A program that caches skills by directory times is never wrong, whatever is seeded, changed or crashes meanwhile."""

import itertools
import random
from collections.abc import Iterator

import pytest
import trio

from tests.seeds.failing_store import FailingStore
from tests.seeds.seeded_scope import SeededScope, settled
from tests.seeds.test_random import RandomChanges, chance  # noqa: F401 (a fixture for the tests here)
from tests.support.scopes import scope_in_memory
from vfsd import clock
from vfsd.seeds.frontmatter import SKILL
from vfsd.store.memory import MemoryStore
from vfsd.tree.chunks import read_chunks
from vfsd.tree.tree import MILLISECOND, Tree

CRASHES, STEPS, AT_ONCE = 12, 25, 4
TICK_NS = 130_000
"""What passes between two looks at the clock: several changes fall into one millisecond."""
MOUNT_TICKS = 10_000
"""How long a mount takes: longer than times run ahead of the clock."""


class Cache:
    """What a program caches of directories by inode number, and the modification times for which that is true.

    It compares times in milliseconds for skills, in nanoseconds for names.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, object, object]] = {}
        self._with_seeds: set[int] = set()

    def look(self, scope: SeededScope, ino: int) -> None:
        """Read the time of a directory. If the cache has this time, its content must be up to date."""
        inode = scope.tree.inode(ino)
        time_ns = inode.attributes.mtime_ns
        names, skills = _names(scope.tree, ino), _skills(scope.tree, ino)
        if ino in self._known:
            known_ns, known_names, known_skills = self._known[ino]
            assert known_ns != time_ns or known_names == names
            assert known_ns // MILLISECOND != time_ns // MILLISECOND or known_skills == skills
        inode.shown = True
        self._known[ino] = (time_ns, names, skills)
        self._with_seeds.discard(ino)
        if not scope.overlay.index.homes.keys().isdisjoint((ino, *_below(scope.tree, ino))):
            self._with_seeds.add(ino)

    def forget_seeds(self, scope: SeededScope) -> None:
        """Forget what a mount without these seeds cannot show."""
        gone = self._with_seeds | scope.overlay.index.homes.keys() | (self._known.keys() - scope.tree.inodes.keys())
        self._known = {ino: known for ino, known in self._known.items() if ino not in gone}


def _names(tree: Tree, ino: int) -> list[tuple[bytes, int]]:
    return sorted((name, entry.ino) for name, entry in tree.directory(ino).entries.items())


def _below(tree: Tree, ino: int) -> Iterator[int]:
    for _, child in _names(tree, ino):
        yield child
        if tree.inode(child).directory is not None:
            yield from _below(tree, child)


def _everything(tree: Tree, ino: int) -> object:
    inode = tree.inode(ino)
    if inode.directory is None:
        return read_chunks(inode.chunks, inode.attributes.size, 0, inode.attributes.size), inode.attributes.target
    return [(name, child, _everything(tree, child)) for name, child in _names(tree, ino)]


def _skills(tree: Tree, ino: int) -> object:
    """Return all that is in the skills at and below directory *ino*; nothing if there is none."""
    if SKILL in tree.directory(ino).entries:
        return _everything(tree, ino)
    directories = [(name, child) for name, child in _names(tree, ino) if tree.inode(child).directory is not None]
    return [(name, child, found) for name, child in directories if (found := _skills(tree, child))]


class RandomChangesExceptTimes(RandomChanges):
    """Sets no modification times: a time that is set back makes every cache wrong."""

    async def _times(self) -> None:
        pass


@pytest.fixture(autouse=True)
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the clock, so that a seed repeats a run exactly."""
    ticks = itertools.count(10**18, TICK_NS)
    monkeypatch.setattr(clock, "now", lambda: next(ticks))


@pytest.mark.parametrize("steady", [True, False])
@pytest.mark.parametrize("run", range(16))
async def test_a_cache_by_directory_times_is_never_wrong(chance: random.Random, run: int, steady: bool) -> None:  # noqa: F811
    store, cache = MemoryStore() if steady else FailingStore(chance), Cache()
    for _ in range(CRASHES):
        async with scope_in_memory(store) as scope:
            await _use(SeededScope(scope), store, cache, chance)
        for _ in range(MOUNT_TICKS):
            clock.now()


async def _use(scope: SeededScope, store: MemoryStore, cache: Cache, chance: random.Random) -> None:  # noqa: F811
    """Make random changes, some concurrent while the store fails at random, and read directories now and then."""
    changes = RandomChangesExceptTimes(scope, chance)
    for _ in range(STEPS):
        if isinstance(store, FailingStore):
            store.steady = False
            async with trio.open_nursery() as nursery:
                for _ in range(chance.randint(1, AT_ONCE)):
                    nursery.start_soon(changes.step)
            store.steady = True
            await settled(scope)
        else:
            await changes.step()
        inodes = scope.tree.inodes.values()
        present = [inode.ino for inode in inodes if inode.directory is not None and not inode.is_orphan]
        for ino in chance.sample(present, min(len(present), chance.choice((0, 0, 1, 2, 9)))):
            cache.look(scope, ino)
    await scope.volume.drain()
    cache.forget_seeds(scope)
