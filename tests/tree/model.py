"""A naive model of the tree: every path in one dict, content as plain bytes, links by counting.

It shares nothing with vfsd but errno numbers. An operation returns the errnos that the manual pages allow here,
in no order of precedence; when there are none it has been done, and ``modified`` and ``changed`` name the nodes
whose modification and change times moved.
"""

import errno
import stat
from collections.abc import Iterator
from typing import TypeAlias

Path: TypeAlias = tuple[bytes, ...]
Errnos: TypeAlias = set[int]

NOREPLACE, EXCHANGE = 1, 2


class ModelNode:
    """A file of any kind. *ino* is what the tree under test calls it; *lookups* counts who has it open."""

    def __init__(self, ino: int, mode: int, uid: int, gid: int, target: bytes = b"") -> None:
        self.ino, self.mode, self.uid, self.gid, self.target = ino, mode, uid, gid, target
        self.content = bytearray()
        self.xattrs: dict[bytes, bytes] = {}
        self.lookups = 0

    def __repr__(self) -> str:
        return f"<{self.ino}>"

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def size(self) -> int:
        return len(self.target) or len(self.content)


class TreeModel:
    """All paths, in the order in which listings show them, and what they mean."""

    def __init__(self, root: ModelNode) -> None:
        self.paths: dict[Path, ModelNode] = {(): root}
        self.modified: set[ModelNode] = set()
        self.changed: set[ModelNode] = set()

    # --- looking

    def begin(self) -> None:
        """Forget which nodes the previous operation changed."""
        self.modified, self.changed = set(), set()

    def nodes(self) -> set[ModelNode]:
        return set(self.paths.values())

    def path(self, node: ModelNode) -> Path | None:
        return next((path for path, other in self.paths.items() if other is node), None)

    def children(self, node: ModelNode) -> dict[bytes, ModelNode]:
        """Return what a listing of *node* shows, in order."""
        parent_path = self.path(node)
        return {path[-1]: child for path, child in self.paths.items() if path and path[:-1] == parent_path}

    def nlink(self, node: ModelNode) -> int:
        if node.is_directory and self.path(node) is not None:
            return 2 + sum(child.is_directory for child in self.children(node).values())
        return sum(other is node for other in self.paths.values())

    def is_gone(self, node: ModelNode) -> bool:
        return not node.lookups and self.path(node) is None

    def _key(self, parent: ModelNode, name: bytes, *, to_make: bool) -> tuple[Errnos, Path]:
        """Return the errors of a name in *parent*, and its path."""
        errors = {errno.ENAMETOOLONG} if len(name) > 255 else set()
        if self.is_gone(parent):
            return errors | {errno.ESTALE}, ()
        if not parent.is_directory:
            return errors | {errno.ENOTDIR}, ()
        parent_path = self.path(parent)
        if parent_path is None:
            return errors | ({errno.ENOENT} if to_make else set()), (b"removed", b"%d" % parent.ino, name)
        return errors, (*parent_path, name)

    # --- names

    def create(self, parent: ModelNode, name: bytes, node: ModelNode) -> Errnos:
        errors, path = self._key(parent, name, to_make=True)
        if path in self.paths:
            errors.add(errno.EEXIST)
        if not errors:
            if parent.mode & stat.S_ISGID:
                node.gid = parent.gid
                node.mode |= stat.S_ISGID if node.is_directory else 0
            self.paths[path] = node
            self.modified |= {parent, node}
        return errors

    def link(self, node: ModelNode, parent: ModelNode, name: bytes) -> Errnos:
        errors, path = self._key(parent, name, to_make=True)
        if self.is_gone(node):
            return errors | {errno.ESTALE}
        if path in self.paths:
            errors.add(errno.EEXIST)
        if node.is_directory:
            errors.add(errno.EPERM)
        elif self.path(node) is None:
            errors.add(errno.ENOENT)
        if not errors:
            self.paths[path] = node
            self.modified.add(parent)
            self.changed.add(node)
        return errors

    def remove(self, parent: ModelNode, name: bytes, *, directory: bool) -> Errnos:
        errors, path = self._key(parent, name, to_make=False)
        child = self.paths.get(path) if path else None
        if errors or child is None:
            return errors or {errno.ENOENT}
        if child.is_directory != directory:
            errors.add(errno.ENOTDIR if directory else errno.EISDIR)
        elif directory and self.children(child):
            errors.add(errno.ENOTEMPTY)
        if not errors:
            del self.paths[path]
            self.modified.add(parent)
            self.changed.add(child)
        return errors

    def rename(self, source: tuple[ModelNode, bytes], target: tuple[ModelNode, bytes], flags: int) -> Errnos:
        errors, old = self._key(*source, to_make=False)
        more, new = self._key(*target, to_make=True)
        errors |= more
        if flags not in (0, NOREPLACE, EXCHANGE):
            errors.add(errno.EINVAL)
        if old and old not in self.paths:
            errors.add(errno.ENOENT)
        if not old or not new:
            return errors
        moved, other = self.paths.get(old), self.paths.get(new)
        errors |= set(self._rename_errors((old, moved), (new, other), flags))
        if not errors and moved is not None and moved is not other:
            self.modified |= {source[0], target[0]}
            self.changed |= {moved} | ({other} if other is not None else set())
            self._move(old, new, flags)
        return errors

    def _rename_errors(
        self, source: tuple[Path, ModelNode | None], target: tuple[Path, ModelNode | None], flags: int
    ) -> Iterator[int]:
        (old, moved), (new, other) = source, target
        if other is None and flags & EXCHANGE:
            yield errno.ENOENT
        if other is not None and flags & NOREPLACE:
            yield errno.EEXIST
        if moved is None or moved is other:
            return
        if moved.is_directory and new[: len(old)] == old:
            yield errno.EINVAL
        if other is not None and flags & EXCHANGE:
            if other.is_directory and old[: len(new)] == new:
                yield errno.EINVAL
        elif other is not None:
            yield from self._replacing_errors(moved, other)

    def _replacing_errors(self, moved: ModelNode, other: ModelNode) -> Iterator[int]:
        if moved.is_directory != other.is_directory:
            yield errno.ENOTDIR if moved.is_directory else errno.EISDIR
        elif other.is_directory and self.children(other):
            yield errno.ENOTEMPTY

    def _move(self, old: Path, new: Path, flags: int) -> None:
        """Move what is at *old*, and all below it, to *new*. A name that exists keeps its position in the dict."""
        left, right = self._taken_out(old), self._taken_out(new)
        moved, other = self.paths[old], self.paths.get(new)
        self.paths[new] = moved
        if flags & EXCHANGE and other is not None:
            self.paths[old] = other
        else:
            del self.paths[old]
        self.paths.update({(*new, *rest): node for rest, node in left.items()})
        self.paths.update({(*old, *rest): node for rest, node in right.items()})

    def _taken_out(self, top: Path) -> dict[Path, ModelNode]:
        """Remove all below *top*; return it by what follows *top* in its path."""
        below = [path for path in self.paths if len(path) > len(top) and path[: len(top)] == top]
        return {path[len(top) :]: self.paths.pop(path) for path in below}

    # --- one node

    def write(self, node: ModelNode, offset: int, data: bytes) -> Errnos:
        if self.is_gone(node):
            return {errno.ESTALE}
        if not stat.S_ISREG(node.mode):
            return {errno.EINVAL}
        if data:
            node.content.extend(bytes(max(0, offset - len(node.content))))
            node.content[offset : offset + len(data)] = data
            self.modified.add(node)
        return set()

    def truncate(self, node: ModelNode, size: int) -> Errnos:
        if self.is_gone(node):
            return {errno.ESTALE}
        if not stat.S_ISREG(node.mode):
            return {errno.EISDIR if node.is_directory else errno.EINVAL}
        del node.content[size:]
        node.content.extend(bytes(size - len(node.content)))
        self.modified.add(node)
        return set()

    def set_owner(self, node: ModelNode, mode: int | None, uid: int | None, gid: int | None) -> Errnos:
        if self.is_gone(node):
            return {errno.ESTALE}
        node.mode = node.mode if mode is None else stat.S_IFMT(node.mode) | mode
        node.uid = node.uid if uid is None else uid
        node.gid = node.gid if gid is None else gid
        self.changed.add(node)
        return set()

    def setxattr(self, node: ModelNode, name: bytes, value: bytes) -> Errnos:
        if self.is_gone(node):
            return {errno.ESTALE}
        wanted = {**node.xattrs, name: value}
        if len(value) > 65536:
            return {errno.E2BIG}
        if sum(len(key) + len(kept) for key, kept in wanted.items()) > 131_072:
            return {errno.ENOSPC}
        node.xattrs = wanted
        self.changed.add(node)
        return set()

    def removexattr(self, node: ModelNode, name: bytes) -> Errnos:
        if self.is_gone(node):
            return {errno.ESTALE}
        if name not in node.xattrs:
            return {errno.ENODATA}
        del node.xattrs[name]
        self.changed.add(node)
        return set()
