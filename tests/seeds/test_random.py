"""Random changes of a scope with seeds: after every step the store holds what memory holds, except the seeds."""

import os
import random
import stat
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import trio

from tests.seeds.failing_store import FailingStore
from tests.seeds.seeded_scope import SeededScope, seeded_scope, settled
from vfsd.errors import FsError, StoreUnreachable
from vfsd.tree.change import CHUNK_SIZE, ROOT
from vfsd.tree.plan_attributes import NewAttributes
from vfsd.tree.plan_names import EntryKey, NewInode

NAMES = (b"a", b"b", b"c", b"SKILL.md")
STEPS = 300
AT_ONCE = 6
SKILL = b"---\nname: review\ndescription: how to review\n---\n"


class RandomChanges:
    """Makes random changes of *scope*."""

    def __init__(self, scope: SeededScope, chance: random.Random) -> None:
        self._scope = scope
        self._volume = scope.volume
        self._chance = chance
        self._open: list[int] = []

    async def step(self) -> None:
        act: Callable[[], Awaitable[object]] = self._chance.choice(
            [
                *(self._create, self._write, self._write, self._truncate, self._chmod, self._link, self._unlink),
                *(self._rename, self._rename, self._exchange, self._rewrite, self._rmtree, self._empty, self._times),
                *(self._rmdir, self._seed, self._seed, self._skill, self._remove, self._hold, self._xattr),
            ]
        )
        with suppress(FsError, StoreUnreachable):  # then nothing has changed, or it is settled later
            await act()

    # --- choosing

    def _directory(self) -> int:
        return self._chance.choice([ino for ino, inode in self._scope.tree.inodes.items() if inode.directory])

    def _file(self) -> int:
        files = [ino for ino, inode in self._scope.tree.inodes.items() if not inode.directory]
        return self._chance.choice(files or [ROOT])

    def _key(self) -> EntryKey:
        return EntryKey(self._directory(), self._chance.choice(NAMES))

    def _taken(self) -> EntryKey:
        keys = [
            EntryKey(ino, name)
            for ino, inode in self._scope.tree.inodes.items()
            if inode.directory
            for name in inode.directory.entries
        ]
        return self._chance.choice(keys or [EntryKey(ROOT, b"a")])

    def _path(self) -> bytes:
        return b"/".join(self._chance.choices(NAMES, k=self._chance.randint(1, 3)))

    def _data(self) -> bytes:
        return self._chance.choice([b"", b"x", b"text", bytes(9), b"y" * CHUNK_SIZE, b"z" * (2 * CHUNK_SIZE + 5)])

    # --- the mount

    async def _create(self) -> None:
        mode = self._chance.choice([stat.S_IFREG | 0o644, stat.S_IFDIR | 0o755, stat.S_IFLNK | 0o777])
        await self._volume.create(self._key(), NewInode(mode, 0, 0, target=b"t" if stat.S_ISLNK(mode) else b""))

    async def _write(self) -> None:
        await self._volume.write(self._file(), self._chance.choice([0, 5, CHUNK_SIZE]), self._data())

    async def _truncate(self) -> None:
        await self._volume.setattr(self._file(), NewAttributes(size=self._chance.choice([0, 3, CHUNK_SIZE + 1])))

    async def _chmod(self) -> None:
        ino = self._chance.choice([self._file(), self._directory()])
        await self._volume.setattr(ino, NewAttributes(mode=self._chance.choice([0o600, 0o755])))

    async def _times(self) -> None:
        await self._volume.setattr(self._chance.choice([self._file(), self._directory()]), NewAttributes(mtime_ns=7))

    async def _xattr(self) -> None:
        await self._volume.setxattr(self._chance.choice([self._file(), self._directory()]), b"user.a", b"v")

    async def _link(self) -> None:
        await self._volume.link(self._file(), self._key())

    async def _unlink(self) -> None:
        await self._volume.unlink(self._taken())

    async def _rmdir(self) -> None:
        await self._volume.rmdir(self._taken())

    async def _rename(self) -> None:
        target = self._chance.choice([self._key(), self._taken()])
        await self._volume.rename(self._taken(), target, 0)

    async def _exchange(self) -> None:
        await self._volume.rename(self._taken(), self._taken(), 2)

    async def _rewrite(self) -> None:
        """Empty a file as open(O_TRUNC) does, and perhaps write to it, before the truncation is stored."""
        ino = self._file()
        await self._volume.truncate_on_open(ino)
        if self._chance.random() < 0.5:
            await self._volume.write(ino, 0, self._data())
        await self._volume.drain()

    async def _empty(self) -> None:
        """Empty a file, and rename, remove or seed before the truncation is stored."""
        ino = self._file()
        await self._volume.truncate_on_open(ino)
        for act in (self._rename, self._unlink, self._seed):
            if self._chance.random() < 0.5:
                with suppress(FsError, StoreUnreachable):
                    await act()
        await self._volume.drain()

    async def _rmtree(self) -> None:
        await self._scope.files.rmdir(self._path(), recursive=True)

    async def _hold(self) -> None:
        """Give the kernel a reference to a file, so that it outlives its name, or take one back."""
        if self._open and self._chance.random() < 0.5:
            ino = self._open.pop()
            self._scope.tree.inode(ino).lookups -= 1
            self._scope.tree.discard_if_unused(ino)
        else:
            ino = self._file()
            self._scope.tree.inode(ino).lookups += 1
            self._open.append(ino)

    # --- seeds

    async def _seed(self) -> None:
        await self._scope.seeding.file(self._path(), self._data(), 0o644)

    async def _skill(self) -> None:
        files = {self._path(): (self._data(), 0o644) for _ in range(self._chance.randint(0, 3))}
        await self._scope.seeding.skill(self._path(), {**files, b"SKILL.md": (SKILL, 0o644)})

    async def _remove(self) -> None:
        seeded = [b"/".join(seed.names) for seed in self._scope.seeding.seeds()]
        await self._scope.seeding.remove(self._chance.choice([*seeded, self._path()]))


@pytest.fixture
def chance() -> random.Random:
    """Return a random generator and print its seed. VFSD_TEST_SEED repeats a run."""
    seed = int(os.environ.get("VFSD_TEST_SEED", "0")) or random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("run", range(8))
async def test_the_store_holds_what_memory_holds_except_the_seeds(chance: random.Random, run: int, keep: bool) -> None:
    async with seeded_scope(keep=keep) as scope:
        changes = RandomChanges(scope, chance)
        for _ in range(STEPS):
            await changes.step()
            await scope.check()


@pytest.mark.parametrize("run", range(8))
async def test_it_does_so_with_concurrent_changes_and_a_store_that_fails_or_does_not_answer(
    chance: random.Random, run: int
) -> None:
    store = FailingStore(chance)
    async with seeded_scope(store=store) as scope:
        changes = RandomChanges(scope, chance)
        for _ in range(STEPS // AT_ONCE):
            store.steady = False
            async with trio.open_nursery() as nursery:
                for _ in range(AT_ONCE):
                    nursery.start_soon(changes.step)
            store.steady = True
            await settled(scope)
            await scope.check()
