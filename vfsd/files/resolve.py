"""What a path means in a tree: names resolved, links followed, directories walked. Pure: no await, no turn, no change.

The kernel resolves the paths of whoever uses the mount; this is for those who ask the daemon itself. It must never look
outside the tree: a link that leads out of the scope is refused, for the daemon would follow it with its own rights.
Source: :manpage:`path_resolution(7)`.
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

MOST_LINKS = 40
"""Links followed on the way, as for the kernel."""

PATH_MAX = 4095
"""Longest path in bytes, as for the kernel (:manpage:`pathconf(3)`): a longer one would keep everybody waiting."""


class ResolvedPath(NamedTuple):
    """Where a path leads.

    *names* lead there from the root, links resolved. *inode* is what is there; None if the last names, *missing*, are
    not. *parent* is the directory that the last name is in or, if names are missing, the first of them would be in.
    *slash* says that only a directory can be meant.
    """

    names: tuple[bytes, ...]
    parent: int
    inode: Inode | None
    missing: tuple[bytes, ...]
    slash: bool

    @property
    def key(self) -> EntryKey:
        """The name itself. Errors: EBUSY (the root has none), ENOENT (nor has a name in a missing directory)."""
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
    """A name still to be taken; *linked* says that a link asks for it, not the caller."""

    name: bytes
    linked: bool


class PathResolver:
    """The paths of *tree*, which is mounted at *mountpoint* (absolute): that may begin a path, and so may ``/``."""

    def __init__(self, tree: Tree, mountpoint: bytes) -> None:
        self._tree = tree
        self._mountpoint = mountpoint

    def find(self, path: bytes, *, follow: bool = True) -> ResolvedPath:
        """Return where *path* leads; a link that is its last name is followed only if *follow*, or a slash says so.

        Errors: EINVAL (a NUL), ENAMETOOLONG (a name, or all), ENOTDIR, ELOOP, EXDEV (a link leads out of the scope).
        """
        if len(path) > PATH_MAX:
            raise FsError(errno.ENAMETOOLONG)
        if b"\0" in path:
            raise FsError(errno.EINVAL, "a path holds no NUL")
        slash = path.rpartition(b"/")[2] in {b"", b".", b".."}
        return _Walk(self._tree, self).to(path, follow=follow or slash, slash=slash)

    def inside(self, path: bytes) -> bytes | None:
        """Return an absolute *path* relative to the mountpoint, or None if it lies outside."""
        if path == self._mountpoint or path.startswith(self._mountpoint + b"/"):
            return path[len(self._mountpoint) :]
        return None

    def absolute(self, names: tuple[bytes, ...]) -> bytes:
        """Return the path by which others know what *names* lead to."""
        return b"/".join((self._mountpoint, *names))


class _Walk:
    """One resolution: how far it has come, and how many links it may still follow."""

    def __init__(self, tree: Tree, paths: PathResolver) -> None:
        self._tree = tree
        self._paths = paths
        self._trail: list[tuple[bytes, Inode]] = []
        self._rest: list[_Component] = []
        self._links = MOST_LINKS

    def to(self, path: bytes, *, follow: bool, slash: bool) -> ResolvedPath:
        inside = self._paths.inside(path)
        self._ask(path if inside is None else inside, linked=False)
        while self._rest:
            missing = self._take(self._rest.pop(), follow=follow)
            if missing:
                return ResolvedPath((*self._names(), *missing), self._here().ino, None, missing, slash)
        found = self._here()
        if slash and found.directory is None:
            raise FsError(errno.ENOTDIR)
        parent = self._trail[-2][1].ino if len(self._trail) > 1 else ROOT
        return ResolvedPath(self._names(), parent, found, (), slash)

    def _ask(self, path: bytes, *, linked: bool) -> None:
        """Put the names of *path* before those still to be taken."""
        self._rest += [_Component(name, linked) for name in reversed(path.split(b"/")) if name]

    def _here(self) -> Inode:
        return self._trail[-1][1] if self._trail else self._tree.inode(ROOT)

    def _names(self) -> tuple[bytes, ...]:
        return tuple(name for name, _ in self._trail)

    def _take(self, step: _Component, *, follow: bool) -> tuple[bytes, ...]:
        """Go one name further; return the names that are missing if it is not there."""
        here = self._here()
        if here.directory is None:
            raise FsError(errno.ENOTDIR, f"{b'/'.join(self._names()).decode(errors='replace')} is no directory")
        if step.name == b".":
            return ()
        if step.name == b"..":
            self._go_up(step)
            return ()
        check_name(step.name)
        child = self._tree.child(here.ino, step.name)
        if child is None:
            return self._missing(step)
        if stat.S_ISLNK(child.attributes.mode) and (self._rest or follow):
            self._follow(child)
        else:
            self._trail.append((step.name, child))
        return ()

    def _go_up(self, step: _Component) -> None:
        if self._trail:
            self._trail.pop()
        elif step.linked:
            raise _leads_out()

    def _missing(self, step: _Component) -> tuple[bytes, ...]:
        names = (step.name, *(later.name for later in reversed(self._rest) if later.name != b"."))
        if b".." in names:
            raise FsError(errno.ENOENT)
        return names

    def _follow(self, link: Inode) -> None:
        if not self._links:
            raise FsError(errno.ELOOP)
        self._links -= 1
        target = link.attributes.target
        if target.startswith(b"/"):
            inside = self._paths.inside(target)
            if inside is None:
                raise _leads_out()
            target = inside
            self._trail.clear()
        self._ask(target, linked=True)


def _leads_out() -> FsError:
    return FsError(errno.EXDEV, "a symbolic link leads out of the scope")


def listing(tree: Tree, directory: Inode, *, recursive: bool) -> list[tuple[bytes, Inode]]:
    """Return what is in *directory*, and if *recursive* in all below it, by its path relative to that, sorted.

    Links are not followed. Errors: ENOTDIR.
    """
    if directory.directory is None:
        raise FsError(errno.ENOTDIR)
    found: list[tuple[bytes, Inode]] = []
    waiting = [(b"", directory)]
    while waiting:
        prefix, holder = waiting.pop()
        for name, entry in tree.directory(holder.ino).entries.items():
            child = tree.inodes[entry.ino]
            found.append((prefix + name, child))
            if recursive and child.directory is not None:
                waiting.append((prefix + name + b"/", child))
    return sorted(found, key=lambda pair: pair[0])


def contents_first(tree: Tree, top: EntryKey) -> Iterator[EntryKey]:
    """Yield *top*, if it is there, and every place below it, whatever lies in a directory before that."""
    child = tree.child(*top)
    if child is None:
        return
    waiting = [(top, _places(child))]
    while waiting:
        key, below = waiting[-1]
        deeper = next(below, None)
        if deeper is None:
            waiting.pop()
            yield key
        else:
            waiting.append((deeper, _places(tree.inodes[_ino(tree, deeper)])))


def _places(inode: Inode) -> Iterator[EntryKey]:
    entries = () if inode.directory is None else inode.directory.entries
    return (EntryKey(inode.ino, name) for name in entries)


def _ino(tree: Tree, key: EntryKey) -> int:
    return tree.directory(key.parent).entries[key.name].ino
