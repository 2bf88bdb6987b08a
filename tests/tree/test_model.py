"""Random changes of a tree and of a naive model: errnos, names, attributes, times and content agree.

The tree is sound after every step. Now and then it is made again, from all its changes and from the records that a
store would hold: both are equal to it, and the run goes on with the one made from the records, as a new mount does.
"""

import stat

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.tree.planner_calls import PlannerCalls
from tests.tree.random_values import (
    CHOICES,
    CHUNKS,
    COUNTS,
    ELAPSED,
    FLAGS,
    IDS,
    KINDS,
    MAYBE_NAMES,
    MODES,
    NAMES,
    POSITIONS,
    TIMES,
    VALUES,
    XATTRS,
)
from vfsd.tree.plan_names import NewInode

CHOICE = st.sampled_from(CHOICES)
NAME = st.sampled_from(NAMES)
MAYBE_NAME = st.sampled_from(MAYBE_NAMES)
MODE = st.sampled_from(MODES)
POSITION = st.sampled_from(POSITIONS)
FLAG = st.sampled_from(FLAGS)
ID = st.sampled_from(IDS)
XATTR = st.sampled_from(XATTRS)
TIME = st.sampled_from(TIMES)


class TreeMachine(RuleBasedStateMachine):
    """Hypothesis draws numbers. :class:`PlannerCalls` turns them into nodes and keys."""

    def __init__(self) -> None:
        super().__init__()
        self.pair = PlannerCalls()
        self.pair.stock()

    # --- names

    @rule(
        parent=CHOICE,
        name=NAME,
        kind=st.sampled_from(KINDS),
        mode=MODE,
        gid=ID,
    )
    def create(self, parent: int, name: bytes, kind: int, mode: int, gid: int) -> None:
        target = b"../target" if stat.S_ISLNK(kind) else b""
        self.pair.create(self.pair.entry(parent, name), NewInode(kind | mode, 0, gid, target=target))

    @rule(choice=CHOICE, kind=st.sampled_from(KINDS), parent=CHOICE, name=NAME)
    def link(self, choice: int, kind: int, parent: int, name: bytes) -> None:
        self.pair.link(self.pair.node(choice, kind), self.pair.entry(parent, name))

    @rule(choice=CHOICE, name=MAYBE_NAME)
    def unlink(self, choice: int, name: bytes | None) -> None:
        self.pair.unlink(self.pair.entry(choice, name))

    @rule(choice=CHOICE, name=MAYBE_NAME)
    def rmdir(self, choice: int, name: bytes | None) -> None:
        self.pair.rmdir(self.pair.entry(choice, name))

    @rule(old=CHOICE, new=CHOICE, new_name=NAME, flags=FLAG)
    def move(self, old: int, new: int, new_name: bytes, flags: int) -> None:
        self.pair.rename(self.pair.entry(old, None), self.pair.entry(new, new_name), flags)

    @rule(old=CHOICE, new=CHOICE, flags=FLAG)
    def replace(self, old: int, new: int, flags: int) -> None:
        self.pair.rename(self.pair.entry(old, None), self.pair.entry(new, None), flags)

    @rule(old=CHOICE, name=NAME, new=CHOICE, new_name=NAME, flags=FLAG)
    def rename(self, old: int, name: bytes, new: int, new_name: bytes, flags: int) -> None:
        self.pair.rename(self.pair.entry(old, name), self.pair.entry(new, new_name), flags)

    # --- one inode

    @rule(choice=CHOICE, offset=POSITION, piece=st.sampled_from(CHUNKS), count=st.sampled_from(COUNTS))
    def write(self, choice: int, offset: int, piece: bytes, count: int) -> None:
        self.pair.write(self.pair.node(choice, stat.S_IFREG), offset, piece * count)

    @rule(choice=CHOICE, size=POSITION)
    def truncate(self, choice: int, size: int) -> None:
        self.pair.truncate(self.pair.node(choice, stat.S_IFREG), size)

    @rule(
        choice=CHOICE,
        mode=st.sampled_from([None, *MODES]),
        uid=st.sampled_from([None, *IDS]),
        gid=st.sampled_from([None, *IDS]),
    )
    def set_owner(self, choice: int, mode: int | None, uid: int | None, gid: int | None) -> None:
        self.pair.set_owner(self.pair.node(choice), mode, uid, gid)

    @rule(choice=CHOICE, atime_ns=TIME, mtime_ns=TIME)
    def utimens(self, choice: int, atime_ns: int, mtime_ns: int) -> None:
        self.pair.utimens(self.pair.node(choice), atime_ns, mtime_ns)

    @rule(choice=CHOICE, name=XATTR, value=st.sampled_from(VALUES))
    def setxattr(self, choice: int, name: bytes, value: bytes) -> None:
        self.pair.setxattr(self.pair.node(choice), name, value)

    @rule(choice=CHOICE, name=XATTR)
    def removexattr(self, choice: int, name: bytes) -> None:
        self.pair.removexattr(self.pair.node(choice), name)

    # --- what the kernel, the clock and an operator do

    @rule(choice=CHOICE)
    def open_or_forget(self, choice: int) -> None:
        self.pair.open_or_forget(self.pair.node(choice))

    @rule(choice=CHOICE)
    def look(self, choice: int) -> None:
        self.pair.look(self.pair.node(choice))

    @rule(elapsed_ns=st.sampled_from(ELAPSED))
    def tick(self, elapsed_ns: int) -> None:
        self.pair.now += elapsed_ns

    @rule(seed=st.sampled_from(range(10)))
    def remount(self, seed: int) -> None:
        self.pair.check_rebuilt(seed)
        self.pair.remount(seed)

    # --- after every step

    @invariant()
    def tree_and_model_agree(self) -> None:
        self.pair.check_model()


TreeMachine.TestCase.settings = settings(
    max_examples=80, stateful_step_count=30, deadline=None, database=None, print_blob=True
)
TestTree = TreeMachine.TestCase
