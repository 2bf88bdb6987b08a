"""One call for every planner and its counterpart in the model, and a small tree to start with."""

import stat
from typing import TypeAlias

from tests.tree.model import ModelNode
from tests.tree.tree_and_model import TreeAndModel
from vfsd.tree.change import CHUNK_SIZE
from vfsd.tree.plan_attributes import NewAttributes, plan_removexattr, plan_setattr, plan_setxattr
from vfsd.tree.plan_content import plan_write
from vfsd.tree.plan_names import EntryKey, NewInode, plan_create, plan_link, plan_rename, plan_rmdir, plan_unlink

ModelKey: TypeAlias = tuple[ModelNode, bytes]


class PlannerCalls(TreeAndModel):
    """What may be done to a tree, done to both."""

    def create(self, key: ModelKey, new: NewInode) -> ModelNode:
        node = ModelNode(self.tree.allocate(), new.mode, new.uid, new.gid, new.target)
        self.step(
            lambda: plan_create(self.tree, _key(key), node.ino, new, self.now),
            lambda: self.model.create(*key, node),
        )
        return node

    def link(self, node: ModelNode, key: ModelKey) -> None:
        self.step(lambda: plan_link(self.tree, node.ino, _key(key), self.now), lambda: self.model.link(node, *key))

    def unlink(self, key: ModelKey) -> None:
        self.step(lambda: plan_unlink(self.tree, _key(key), self.now), lambda: self.model.remove(*key, directory=False))

    def rmdir(self, key: ModelKey) -> None:
        self.step(lambda: plan_rmdir(self.tree, _key(key), self.now), lambda: self.model.remove(*key, directory=True))

    def rename(self, old: ModelKey, new: ModelKey, flags: int) -> None:
        self.step(
            lambda: plan_rename(self.tree, _key(old), _key(new), flags, self.now),
            lambda: self.model.rename(old, new, flags),
        )

    def write(self, node: ModelNode, offset: int, data: bytes) -> None:
        self.step(
            lambda: plan_write(self.tree, node.ino, offset, data, self.now),
            lambda: self.model.write(node, offset, data),
        )

    def truncate(self, node: ModelNode, size: int) -> None:
        new = NewAttributes(size=size)
        self.step(lambda: plan_setattr(self.tree, node.ino, new, self.now), lambda: self.model.truncate(node, size))

    def set_owner(self, node: ModelNode, mode: int | None, uid: int | None, gid: int | None) -> None:
        new = NewAttributes(mode, uid, gid)
        self.step(
            lambda: plan_setattr(self.tree, node.ino, new, self.now), lambda: self.model.set_owner(node, mode, uid, gid)
        )

    def utimens(self, node: ModelNode, atime_ns: int, mtime_ns: int) -> None:
        new = NewAttributes(atime_ns=atime_ns, mtime_ns=mtime_ns)
        self.expect_times(node, atime_ns, mtime_ns)
        self.step(
            lambda: plan_setattr(self.tree, node.ino, new, self.now),
            lambda: self.model.set_owner(node, None, None, None),
        )

    def setxattr(self, node: ModelNode, name: bytes, value: bytes) -> None:
        self.step(
            lambda: plan_setxattr(self.tree, node.ino, name, value, self.now),
            lambda: self.model.setxattr(node, name, value),
        )

    def removexattr(self, node: ModelNode, name: bytes) -> None:
        self.step(
            lambda: plan_removexattr(self.tree, node.ino, name, self.now), lambda: self.model.removexattr(node, name)
        )

    def stock(self) -> None:
        """Make a few files of every kind, so that random changes collide from the start."""
        full = self.create((self.root, b"a"), NewInode(stat.S_IFDIR | 0o755, 0, 1))
        inner = self.create((full, b"b"), NewInode(stat.S_IFDIR | 0o2755, 0, 2))
        empty = self.create((self.root, b"b"), NewInode(stat.S_IFDIR | 0o700, 0, 1))
        file = self.create((full, b"c"), NewInode(stat.S_IFREG | 0o644, 0, 1))
        self.write(file, CHUNK_SIZE - 1, b"two chunks")
        self.link(file, (inner, b"a"))
        self.create((inner, b"b"), NewInode(stat.S_IFLNK | 0o777, 0, 1, target=b"../target"))
        self.create((inner, b"c"), NewInode(stat.S_IFIFO | 0o600, 0, 1))
        removed, unlinked = (self.create((empty, name), NewInode(mode, 0, 1)) for name, mode in REMOVED)
        for node in (removed, unlinked):
            self.hold(node, +1)
        self.write(unlinked, 0, b"still open")
        self.rmdir((empty, b"a"))
        self.unlink((empty, b"b"))


REMOVED = ((b"a", stat.S_IFDIR | 0o755), (b"b", stat.S_IFREG | 0o644))


def _key(key: ModelKey) -> EntryKey:
    parent, name = key
    return EntryKey(parent.ino, name)
