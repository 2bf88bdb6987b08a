"""A tree and a naive model of it: each step changes both, and looks for every difference between them."""

import random
import stat
from collections.abc import Callable
from typing import NamedTuple

from tests.tree.model import Errnos, ModelNode, TreeModel
from tests.tree.planned_tree import BEGINNING, DIRECTORY, content_of, new_tree, picture
from tests.tree.rebuild import Records, check_sound, replayed, stored_part
from vfsd.errors import FsError
from vfsd.tree.change import ROOT, Change, Op, PutInode


class Times(NamedTuple):
    """The three times of a node, in nanoseconds."""

    atime_ns: int
    mtime_ns: int
    ctime_ns: int


class TreeAndModel:
    """The tree under test, the model, all that has been applied, and what a store would hold."""

    def __init__(self) -> None:
        self.root = ModelNode(ROOT, DIRECTORY, 0, 0)
        self.model = TreeModel(self.root)
        self.tree = new_tree()
        self.now = BEGINNING
        self.log: list[Op] = [PutInode(ROOT, self.tree.inode(ROOT).attributes)]
        self.records = Records()
        self.records.keep(self.log)
        self.times = {self.root: self._times(self.root)}

    # --- choosing

    def node(self, choice: int, mode: int = 0) -> ModelNode:
        """Return a node for a number: in 7 of 8 cases one that exists and, if *mode* is given, is of that type."""
        index, dice = divmod(choice, 8)
        everything = list(self.times)
        present = self._present()
        fitting = [node for node in everything if node in present and mode in (0, stat.S_IFMT(node.mode))]
        candidates = everything if dice == 7 or not fitting else fitting
        return candidates[index % len(candidates)]

    def entry(self, choice: int, name: bytes | None) -> tuple[ModelNode, bytes]:
        """Return a key for a number: *name* in some directory or, without a name, an existing one."""
        taken = list(self.model.paths)[1:]
        if name is not None or not taken:
            return self.node(choice, stat.S_IFDIR), name or b"a"
        path = taken[choice % len(taken)]
        return self.model.paths[path[:-1]], path[-1]

    # --- changing

    def step(self, plan: Callable[[], Change], expect: Callable[[], Errnos]) -> bool:
        """Plan, compare with what the model allows, apply; return whether it was done."""
        before, change, refused = picture(self.tree), None, 0
        try:
            change = plan()
        except FsError as error:
            refused = error.errno
        assert picture(self.tree) == before, "planning has changed the tree"
        self.model.begin()
        allowed = expect()
        if change is None:
            assert refused in allowed
            return False
        assert not allowed
        self._apply(change)
        self._check_times()
        return True

    def _apply(self, change: Change) -> None:
        next_cookies, before = self._next_cookies(), self._cookies()
        self.tree.apply(change)
        self.log += change.ops
        self.records.keep(change.ops)
        for ino, cookie in self._cookies() - before:
            assert cookie >= next_cookies.get(ino, 0), "a cookie is given again"

    def _next_cookies(self) -> dict[int, int]:
        return {ino: inode.directory.next_cookie for ino, inode in self.tree.inodes.items() if inode.directory}

    def _cookies(self) -> set[tuple[int, int]]:
        return {
            (ino, entry.cookie)
            for ino, inode in self.tree.inodes.items()
            if inode.directory
            for entry in inode.directory.entries.values()
        }

    def look(self, node: ModelNode) -> None:
        """Record that somebody has seen the attributes of *node*."""
        if not self.model.is_gone(node):
            self.tree.inode(node.ino).shown = True

    def expect_times(self, node: ModelNode, atime_ns: int, mtime_ns: int) -> None:
        """Expect these times of *node* from now on."""
        self.times[node] = Times(atime_ns, mtime_ns, self.times[node].ctime_ns)

    def open_or_forget(self, node: ModelNode) -> None:
        """Let the kernel open *node*, or forget it if it has it open."""
        if not self.model.is_gone(node):
            self.hold(node, -1 if node.lookups else +1)

    def hold(self, node: ModelNode, difference: int) -> None:
        """Change the kernel's lookup count of *node*."""
        node.lookups += difference
        self.tree.inode(node.ino).lookups += difference
        self.tree.discard_if_unused(node.ino)

    def remount(self, seed: int) -> None:
        """Continue with a tree made from the records. Nothing is open."""
        next_ino = self.tree.next_ino
        self.log = self.records.ops(random.Random(seed))
        self.tree = replayed(self.log)
        self.tree.next_ino = next_ino
        for node in self.times:
            node.lookups = 0

    # --- comparing

    def _times(self, node: ModelNode) -> Times:
        attributes = self.tree.inode(node.ino).attributes
        return Times(attributes.atime_ns, attributes.mtime_ns, attributes.ctime_ns)

    def _present(self) -> set[ModelNode]:
        lookups = {node for node in self.times if node.lookups}
        return self.model.nodes() | lookups

    def _check_times(self) -> None:
        """Assert that the times of the nodes that were touched have moved, and no others."""
        for node in self._present():
            found = self._times(node)
            known = self.times.get(node)
            if known is None:
                assert found == Times(self.now, self.now, self.now)
            elif node in self.model.modified:
                assert found == (known.atime_ns, self.now, self.now)
            else:
                ctime_ns = self.now if node in self.model.changed else known.ctime_ns
                assert found == (known.atime_ns, known.mtime_ns, ctime_ns)
            self.times[node] = found

    def check_model(self) -> None:
        """Assert that the tree is sound and the model's: inodes, listings in order, attributes, content."""
        check_sound(self.tree)
        assert set(self.tree.inodes) == {node.ino for node in self._present()}
        for node in self._present():
            inode = self.tree.inode(node.ino)
            found = inode.attributes
            assert (found.mode, found.uid, found.gid) == (node.mode, node.uid, node.gid)
            assert (found.nlink, found.size) == (self.model.nlink(node), node.size)
            assert (found.target, dict(found.xattrs)) == (node.target, node.xattrs)
            assert inode.lookups == node.lookups
            if node.is_directory:
                listing = [(name, entry.ino) for name, entry in self.tree.directory(node.ino).entries.items()]
                assert listing == [(name, child.ino) for name, child in self.model.children(node).items()]
            elif not node.target:
                assert content_of(self.tree, node.ino) == node.content

    def check_rebuilt(self, seed: int) -> None:
        """Assert that a tree rebuilt from the changes, or from the records, is sound and equal to the tree."""
        for ops in (self.log, self.records.ops(random.Random(seed))):
            rebuilt = replayed(ops)
            check_sound(rebuilt)
            assert stored_part(rebuilt) == stored_part(self.tree)
