"""Resolving paths in a tree: following names and symbolic links, and removing directories.

The kernel resolves paths for programs that use the mount. This is for requests that name a path to the daemon itself.
It must never look outside the tree: a link that leads out of the scope is refused, because the daemon would follow it
with its own rights. Nothing here awaits, takes a lock or changes the tree. Source: :manpage:`path_resolution(7)`.
"""

import errno
import stat
from collections.abc import Iterator
from typing import NamedTuple

from vfsd.errors import FsError
from vfsd.tree.change import ROOT
from vfsd.tree.draft import check_name
from vfsd.tree.inode import Inode
from vfsd.tree.plan_names import EntryKey
from vfsd.tree.tree import Tree

LINKS_MAX = 40
"""Most symbolic links that one resolution follows; the kernel has the same limit."""

PATH_MAX = 4095
"""Longest path in bytes; the kernel has the same limit (:manpage:`pathconf(3)`).

The daemon serves nobody else while it resolves a path.
"""


class ResolvedPath(NamedTuple):
    """Where a path leads.

    *names* lead there from the root, with symbolic links resolved. *inode* is what is there; None if the last of these
    names do not exist: they are *missing*. *parent* is the directory of the last name or, if names are missing, the
    directory in which the first of them would be. *slash* says that the path ends in a slash or in a dot: it can only
    mean a directory.
    """

    names: tuple[bytes, ...]
    parent: int
    inode: Inode | None
    missing: tuple[bytes, ...]
    slash: bool

    @property
    def key(self) -> EntryKey:
        """The key of the last name. Errors: EBUSY (the root has no name), ENOENT (its directory is missing)."""
        if not self.names:
            raise FsError(errno.EBUSY)
        if len(self.missing) > 1:
            raise FsError(errno.ENOENT)
        return EntryKey(self.parent, self.names[-1])

    def existing(self) -> Inode:
        """Return what is there. Errors: ENOENT."""
        if self.inode is None:
            raise FsError(errno.ENOENT)
        return self.inode


class _Component(NamedTuple):
    """A name that is still to be resolved. *linked* says that it comes from a symbolic link, not from the caller."""

    name: bytes
    linked: bool


class PathResolver:
    """Resolves paths in *tree*, which is mounted at *mountpoint* (an absolute path).

    A path may begin with the mountpoint. Any other path is relative to the root of the tree.
    """

    def __init__(self, tree: Tree, mountpoint: bytes) -> None:
        self._tree = tree
        self._mountpoint = mountpoint

    def find(self, path: bytes, *, follow: bool = True) -> ResolvedPath:
        """Return where *path* leads. A symbolic link at the end is followed with *follow*, or if a slash follows it.

        Errors: EINVAL (a NUL), ENAMETOOLONG (one name, or the path), ENOENT (``..`` after a missing name), ENOTDIR,
        ELOOP, EXDEV (a symbolic link leads out of the scope).
        """
        if len(path) > PATH_MAX:
            raise FsError(errno.ENAMETOOLONG)
        if b"\0" in path:
            raise FsError(errno.EINVAL, "a path holds no NUL")
        slash = path.rpartition(b"/")[2] in {b"", b".", b".."}
        return _Resolution(self._tree, self).resolve(path, follow=follow or slash, slash=slash)

    def inside(self, path: bytes) -> bytes | None:
        """Return an absolute *path* relative to the mountpoint, or None if it lies outside."""
        if path == self._mountpoint or path.startswith(self._mountpoint + b"/"):
            return path[len(self._mountpoint) :]
        return None

    def absolute(self, names: tuple[bytes, ...]) -> bytes:
        """Return the absolute path of *names* below the mountpoint."""
        return b"/".join((self._mountpoint, *names))


class _Resolution:
    """One resolution in progress: the inodes that were passed, the names that remain, and the links left to follow."""

    def __init__(self, tree: Tree, paths: PathResolver) -> None:
        self._tree = tree
        self._paths = paths
        self._passed: list[tuple[bytes, Inode]] = []
        self._remaining: list[_Component] = []  # in reverse order: the next name is the last item
        self._links_left = LINKS_MAX

    def resolve(self, path: bytes, *, follow: bool, slash: bool) -> ResolvedPath:
        inside = self._paths.inside(path)
        self._push(path if inside is None else inside, linked=False)
        while self._remaining:
            missing = self._step(self._remaining.pop(), follow=follow)
            if missing:
                return ResolvedPath((*self._names(), *missing), self._current().ino, None, missing, slash)
        found = self._current()
        if slash and found.directory is None:
            raise FsError(errno.ENOTDIR)
        parent = self._passed[-2][1].ino if len(self._passed) > 1 else ROOT
        return ResolvedPath(self._names(), parent, found, (), slash)

    def _push(self, path: bytes, *, linked: bool) -> None:
        """Add the names of *path* in front of those that remain: at the end of the list, which is in reverse order."""
        self._remaining += [_Component(name, linked) for name in reversed(path.split(b"/")) if name]

    def _current(self) -> Inode:
        return self._passed[-1][1] if self._passed else self._tree.inode(ROOT)

    def _names(self) -> tuple[bytes, ...]:
        return tuple(name for name, _ in self._passed)

    def _step(self, component: _Component, *, follow: bool) -> tuple[bytes, ...]:
        """Resolve one name. If it does not exist, return it and all names after it; otherwise nothing."""
        current = self._current()
        if current.directory is None:
            raise FsError(errno.ENOTDIR, f"{b'/'.join(self._names()).decode(errors='replace')} is no directory")
        if component.name == b".":
            return ()
        if component.name == b"..":
            self._go_up(component)
            return ()
        check_name(component.name)
        child = self._tree.child(current.ino, component.name)
        if child is None:
            return self._missing(component)
        if stat.S_ISLNK(child.attributes.mode) and (self._remaining or follow):
            self._follow(child)
        else:
            self._passed.append((component.name, child))
        return ()

    def _go_up(self, component: _Component) -> None:
        if self._passed:
            self._passed.pop()
        elif component.linked:
            raise _leads_out()

    def _missing(self, component: _Component) -> tuple[bytes, ...]:
        names = (component.name, *(later.name for later in reversed(self._remaining) if later.name != b"."))
        if b".." in names:
            raise FsError(errno.ENOENT)
        return names

    def _follow(self, link: Inode) -> None:
        if not self._links_left:
            raise FsError(errno.ELOOP)
        self._links_left -= 1
        target = link.attributes.target
        if target.startswith(b"/"):
            inside = self._paths.inside(target)
            if inside is None:
                raise _leads_out()
            target = inside
            self._passed.clear()
        self._push(target, linked=True)


def _leads_out() -> FsError:
    return FsError(errno.EXDEV, "a symbolic link leads out of the scope")


def contents_first(tree: Tree, top: EntryKey) -> Iterator[EntryKey]:
    """Yield *top*, if it exists, and the keys of all entries below it. What a directory contains comes before it."""
    child = tree.child(*top)
    if child is None:
        return
    waiting = [(top, _keys_in(child))]
    while waiting:
        key, below = waiting[-1]
        next_key = next(below, None)
        if next_key is None:
            waiting.pop()
            yield key
        else:
            waiting.append((next_key, _keys_in(tree.inodes[_ino_at(tree, next_key)])))


def _keys_in(inode: Inode) -> Iterator[EntryKey]:
    entries = () if inode.directory is None else inode.directory.entries
    return (EntryKey(inode.ino, name) for name in entries)


def _ino_at(tree: Tree, key: EntryKey) -> int:
    return tree.directory(key.parent).entries[key.name].ino
