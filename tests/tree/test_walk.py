"""Long random walks through the same changes as :mod:`tests.tree.test_model`, deeper than its short examples go."""

import random
import stat
from collections.abc import Callable, Sequence

import pytest

from tests.tree import choices
from tests.tree.actions import Actions
from tests.tree.model import Node
from vfsd.tree.plan_names import NewInode

WALKS = 10
STEPS = 400


class Walk:
    """One walk: *chance* decides what happens, and to what."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.both = Actions()
        self.both.stock()
        self.moves: list[Callable[[], None]] = [
            *[self.create] * 3,
            *[self.rename] * 4,
            *[self.write] * 2,
            self.link,
            self.unlink,
            self.rmdir,
            self.truncate,
            self.own,
            self.utimens,
            self.xattrs,
            self.look,
            *[self.open_or_forget] * 2,
            self.tick,
        ]

    def step(self) -> None:
        self.chance.choice(self.moves)()
        self.both.check_model()

    def remount(self) -> None:
        seed = self.chance.randrange(2**32)
        self.both.check_rebuilt(seed)
        self.both.remount(seed)
        self.both.check_model()

    def create(self) -> None:
        kind = self.chance.choice(choices.KINDS)
        mode, gid = kind | self.chance.choice(choices.MODES), self.chance.choice(choices.IDS)
        target = b"../target" if stat.S_ISLNK(kind) else b""
        self.both.create(self._place(choices.NAMES), NewInode(mode, 0, gid, target=target))

    def link(self) -> None:
        self.both.link(self._node(self.chance.choice(choices.KINDS)), self._place(choices.NAMES))

    def unlink(self) -> None:
        self.both.unlink(self._place(choices.MAYBE_NAMES))

    def rmdir(self) -> None:
        self.both.rmdir(self._place(choices.MAYBE_NAMES))

    def rename(self) -> None:
        source, target = self._place(choices.MAYBE_NAMES), self._place(choices.MAYBE_NAMES)
        self.both.rename(source, target, self.chance.choice(choices.FLAGS))

    def write(self) -> None:
        offset, count = self.chance.choice(choices.POSITIONS), self.chance.choice(choices.COUNTS)
        self.both.write(self._node(stat.S_IFREG), offset, self.chance.choice(choices.CHUNKS) * count)

    def truncate(self) -> None:
        self.both.truncate(self._node(stat.S_IFREG), self.chance.choice(choices.POSITIONS))

    def own(self) -> None:
        mode, uid, gid = (self.chance.choice([None, *table]) for table in (choices.MODES, choices.IDS, choices.IDS))
        self.both.own(self._node(), mode, uid, gid)

    def utimens(self) -> None:
        self.both.utimens(self._node(), self.chance.choice(choices.TIMES), self.chance.choice(choices.TIMES))

    def xattrs(self) -> None:
        node, name = self._node(), self.chance.choice(choices.XATTRS)
        if self.chance.random() < 1 / 2:
            self.both.removexattr(node, name)
        else:
            self.both.setxattr(node, name, self.chance.choice(choices.VALUES))

    def look(self) -> None:
        self.both.look(self._node())

    def open_or_forget(self) -> None:
        self.both.open_or_forget(self._node())

    def tick(self) -> None:
        self.both.now += self.chance.choice(choices.ELAPSED)

    def _node(self, mode: int = 0) -> Node:
        return self.both.node(self.chance.choice(choices.CHOICES), mode)

    def _place(self, names: Sequence[bytes | None]) -> tuple[Node, bytes]:
        return self.both.place(self.chance.choice(choices.CHOICES), self.chance.choice(names))


@pytest.mark.parametrize("number", range(WALKS))
def test_a_long_walk(number: int) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    walk = Walk(random.Random(seed))
    for step in range(1, STEPS + 1):
        walk.step()
        if step % 100 == 0:
            walk.remount()
