"""Long random walks through the same changes as :mod:`tests.tree.test_model`, deeper than its short examples go."""

import random
import stat
from collections.abc import Callable, Sequence

import pytest

from tests.tree import random_values
from tests.tree.model import ModelNode
from tests.tree.planner_calls import PlannerCalls
from vfsd.tree.plan_names import NewInode

WALKS = 10
STEPS = 400


class RandomWalk:
    """One random walk. *chance* chooses the operations and their arguments."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.pair = PlannerCalls()
        self.pair.stock()
        self.moves: list[Callable[[], None]] = [
            *[self.create] * 3,
            *[self.rename] * 4,
            *[self.write] * 2,
            self.link,
            self.unlink,
            self.rmdir,
            self.truncate,
            self.set_owner,
            self.utimens,
            self.xattrs,
            self.look,
            *[self.open_or_forget] * 2,
            self.tick,
        ]

    def step(self) -> None:
        self.chance.choice(self.moves)()
        self.pair.check_model()

    def remount(self) -> None:
        seed = self.chance.randrange(2**32)
        self.pair.check_rebuilt(seed)
        self.pair.remount(seed)
        self.pair.check_model()

    def create(self) -> None:
        kind = self.chance.choice(random_values.KINDS)
        mode, gid = kind | self.chance.choice(random_values.MODES), self.chance.choice(random_values.IDS)
        target = b"../target" if stat.S_ISLNK(kind) else b""
        self.pair.create(self._key(random_values.NAMES), NewInode(mode, 0, gid, target=target))

    def link(self) -> None:
        self.pair.link(self._node(self.chance.choice(random_values.KINDS)), self._key(random_values.NAMES))

    def unlink(self) -> None:
        self.pair.unlink(self._key(random_values.MAYBE_NAMES))

    def rmdir(self) -> None:
        self.pair.rmdir(self._key(random_values.MAYBE_NAMES))

    def rename(self) -> None:
        source, target = self._key(random_values.MAYBE_NAMES), self._key(random_values.MAYBE_NAMES)
        self.pair.rename(source, target, self.chance.choice(random_values.FLAGS))

    def write(self) -> None:
        offset, count = self.chance.choice(random_values.POSITIONS), self.chance.choice(random_values.COUNTS)
        self.pair.write(self._node(stat.S_IFREG), offset, self.chance.choice(random_values.CHUNKS) * count)

    def truncate(self) -> None:
        self.pair.truncate(self._node(stat.S_IFREG), self.chance.choice(random_values.POSITIONS))

    def set_owner(self) -> None:
        mode, uid, gid = (
            self.chance.choice([None, *table]) for table in (random_values.MODES, random_values.IDS, random_values.IDS)
        )
        self.pair.set_owner(self._node(), mode, uid, gid)

    def utimens(self) -> None:
        self.pair.utimens(
            self._node(), self.chance.choice(random_values.TIMES), self.chance.choice(random_values.TIMES)
        )

    def xattrs(self) -> None:
        node, name = self._node(), self.chance.choice(random_values.XATTRS)
        if self.chance.random() < 1 / 2:
            self.pair.removexattr(node, name)
        else:
            self.pair.setxattr(node, name, self.chance.choice(random_values.VALUES))

    def look(self) -> None:
        self.pair.look(self._node())

    def open_or_forget(self) -> None:
        self.pair.open_or_forget(self._node())

    def tick(self) -> None:
        self.pair.now += self.chance.choice(random_values.ELAPSED)

    def _node(self, mode: int = 0) -> ModelNode:
        return self.pair.node(self.chance.choice(random_values.CHOICES), mode)

    def _key(self, names: Sequence[bytes | None]) -> tuple[ModelNode, bytes]:
        return self.pair.entry(self.chance.choice(random_values.CHOICES), self.chance.choice(names))


@pytest.mark.parametrize("number", range(WALKS))
def test_a_long_walk(number: int) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    random_walk = RandomWalk(random.Random(seed))
    for step in range(1, STEPS + 1):
        random_walk.step()
        if step % 100 == 0:
            random_walk.remount()
