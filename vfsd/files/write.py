"""Whole files of a mounted scope by their paths: what the control socket offers beside the mount.

Every change here is one planned change, made by the pipeline like any other, and the kernel is told
before the caller is, so that the mount shows it. Nothing here knows the wire or FUSE.
"""

import errno
import os
import stat
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import NamedTuple, TypeAlias

import trio

from vfsd.errors import FsError, StaleFile
from vfsd.files.read import WHOLE_MAX, regular, shown, too_large
from vfsd.files.resolve import PathResolver, ResolvedPath, contents_first
from vfsd.scope.hooks import NOTHING, Plan, Touched
from vfsd.scope.volume import Volume
from vfsd.tree.change import PERMISSIONS, Change, PutEntry, PutInode
from vfsd.tree.inode import Inode
from vfsd.tree.plan_content import plan_write
from vfsd.tree.plan_names import RENAME_NOREPLACE, EntryKey, NewInode
from vfsd.tree.plan_subtree import FileContent, NewEntry, plan_create_path, plan_remove, plan_replace
from vfsd.tree.tree import Tree

_REMOVED_AT_ONCE = 1000
"""Most names that a recursive rmdir removes in one change."""

_DIRECTORY_MODE = 0o755

Tell: TypeAlias = Callable[[Change], Awaitable[None]]
"""Lets the kernel forget what a change made untrue. Never called with a turn held."""


class WriteResult(NamedTuple):
    """A file after it was written: when (ns), how large it is, and whether it is new."""

    mtime_ns: int
    size: int
    created: bool


class WriteOptions(NamedTuple):
    """On what terms a file is written.

    *expected_mtime_ns*: only if it was last modified exactly then (StaleFile). *create_only*: only if nothing is there
    (EEXIST). *parents*: make missing directories. *mode*: permissions of a new file.
    """

    expected_mtime_ns: int | None = None
    create_only: bool = False
    parents: bool = False
    mode: int = 0o644


class _Writing(NamedTuple):
    """One way of writing: what becomes of a file that is there, and what a new one contains and may."""

    path: bytes
    terms: WriteOptions
    change: Callable[[int, int], Change]
    new: Callable[[], tuple[FileContent, int]]


class FileWriter:
    """Changes the files of *volume*, which holds *tree*, by *paths*. *tell* tells the kernel of every change.

    All methods raise FsError for what a path or a rule refuses (see :meth:`PathResolver.find`; EROFS on a read-only
    mount), and StoreError for what the store does.
    """

    def __init__(self, volume: Volume, tree: Tree, paths: PathResolver, tell: Tell) -> None:
        self._volume = volume
        self._tree = tree
        self._paths = paths
        self._tell = tell

    # --- writing content

    async def write(self, path: bytes, data: bytes, terms: WriteOptions) -> WriteResult:
        """Let the file at *path* contain *data* and nothing else, in one step, whether or not it is there.

        Errors: StaleFile, EEXIST, ENOENT (no directory), EISDIR, EINVAL (neither file nor directory), EFBIG.
        """
        whole = FileContent.of(_checked(data))

        def replacing(ino: int, now_ns: int) -> Change:
            return plan_replace(self._tree, ino, whole, now_ns)

        return await self._write(_Writing(path, terms, replacing, lambda: (whole, terms.mode)))

    async def append(self, path: bytes, data: bytes, *, parents: bool = False) -> WriteResult:
        """Put *data* at the end of the file at *path*, or make one of it. Errors: as for :meth:`write`."""
        whole, terms = FileContent.of(_checked(data)), WriteOptions(parents=parents)

        def at_the_end(ino: int, now_ns: int) -> Change:
            return plan_write(self._tree, ino, self._tree.inode(ino).attributes.size, data, now_ns)

        return await self._write(_Writing(path, terms, at_the_end, lambda: (whole, terms.mode)))

    async def copy(self, source: bytes, target: bytes, *, overwrite: bool = True, parents: bool = False) -> WriteResult:
        """Let the file at *target* contain what the one at *source* does; a new one has its permissions too.

        Errors: as for :meth:`write`; EEXIST unless *overwrite*; EINVAL if both are one file.
        """

        def copied() -> tuple[FileContent, int]:
            original = regular(self._paths.find(source))
            if original.attributes.size > WHOLE_MAX:
                raise too_large("copy it through the mount")
            return FileContent(original.attributes.size, dict(original.chunks)), original.attributes.mode

        def replacing(ino: int, now_ns: int) -> Change:
            if regular(self._paths.find(source)).ino == ino:
                raise FsError(errno.EINVAL, "source and target are the same file")
            return plan_replace(self._tree, ino, copied()[0], now_ns)

        copied()
        terms = WriteOptions(create_only=not overwrite, parents=parents)
        return await self._write(_Writing(target, terms, replacing, copied))

    async def _write(self, writing: _Writing) -> WriteResult:
        def touched() -> tuple[int, ...]:
            spot = self._target(writing)
            return (spot.parent if spot.inode is None else spot.inode.ino,)

        def plan(now_ns: int) -> Change:
            spot = self._target(writing)
            _check_expected(spot, writing.terms.expected_mtime_ns)
            if spot.inode is not None:
                return writing.change(regular(spot).ino, now_ns)
            if spot.slash:
                raise FsError(errno.EISDIR)
            whole, mode = writing.new()
            return self._plan_new(spot, stat.S_IFREG | (mode & PERMISSIONS), whole, writing.terms, now_ns)

        change = await self._make(touched, plan)
        return self._written(change, writing)

    def _target(self, writing: _Writing) -> ResolvedPath:
        """Return what is to be written. With *create_only* a link to nowhere is something too, as for O_EXCL."""
        spot = self._paths.find(writing.path, follow=not writing.terms.create_only)
        if writing.terms.create_only and spot.inode is not None:
            raise FsError(errno.EEXIST)
        return spot

    def _written(self, change: Change, writing: _Writing) -> WriteResult:
        """Return what *change* made of the file: it may be another by now. An empty append changes nothing."""
        files = [op.attributes for op in change.ops if isinstance(op, PutInode) and op.attributes.is_regular]
        created = any(isinstance(op, PutEntry) for op in change.ops)
        attributes = files[-1] if files else shown(regular(self._paths.find(writing.path)))
        return WriteResult(attributes.mtime_ns, attributes.size, created)

    def _plan_new(self, spot: ResolvedPath, mode: int, whole: FileContent, terms: WriteOptions, now_ns: int) -> Change:
        """Plan what *spot* lacks: missing directories, if the terms allow it, and the last name as *mode* says."""
        if len(spot.missing) > 1 and not terms.parents:
            raise FsError(errno.ENOENT)
        *above, last = spot.missing
        branch = [self._sprout(name, stat.S_IFDIR | _DIRECTORY_MODE) for name in above]
        return plan_create_path(self._tree, spot.parent, [*branch, self._sprout(last, mode)], whole, now_ns)

    def _sprout(self, name: bytes, mode: int) -> NewEntry:
        return NewEntry(name, self._tree.allocate(), NewInode(mode, os.geteuid(), os.getegid()))

    # --- changing names

    async def delete(self, path: bytes, *, missing_ok: bool = False) -> bool:
        """Remove a name that is no directory's; return whether it was there. Errors: ENOENT, EISDIR."""
        spot = self._paths.find(path, follow=False)
        if spot.inode is None and missing_ok:
            return False
        spot.existing()
        await self._told(self._volume.unlink(spot.key))
        return True

    async def move(self, source: bytes, target: bytes, *, overwrite: bool = True, parents: bool = False) -> None:
        """Give what is at *source* the name *target*, replacing what is there (:manpage:`rename(2)`).

        Errors: ENOENT, EEXIST unless *overwrite*, EISDIR, ENOTDIR, ENOTEMPTY, EINVAL (a directory into itself), EBUSY.
        """
        moved = self._paths.find(source, follow=False)
        moved.existing()
        spot = self._paths.find(target, follow=False)
        if len(spot.missing) > 1 and parents:
            await self.mkdir(b"/".join((b"", *spot.names[:-1])), parents=True)
            spot = self._paths.find(target, follow=False)
        await self._told(self._volume.rename(moved.key, spot.key, 0 if overwrite else RENAME_NOREPLACE))

    async def mkdir(self, path: bytes, *, parents: bool = False, mode: int = _DIRECTORY_MODE) -> bool:
        """Make a directory; with *parents* those above it too, and one that is there is no error. Return if it is new.

        Errors: EEXIST, ENOENT.
        """

        def touched() -> tuple[int, ...]:
            spot = self._paths.find(path, follow=parents)
            return (spot.parent if spot.inode is None else spot.inode.ino,)

        def plan(now_ns: int) -> Change:
            spot = self._paths.find(path, follow=parents)
            if spot.inode is None:
                wanted = stat.S_IFDIR | (mode & PERMISSIONS)
                return self._plan_new(spot, wanted, FileContent(), WriteOptions(parents=parents), now_ns)
            if not parents or spot.inode.directory is None:
                raise FsError(errno.EEXIST)
            return NOTHING

        return bool((await self._make(touched, plan)).ops)

    async def rmdir(self, path: bytes, *, recursive: bool = False, missing_ok: bool = False) -> None:
        """Remove a directory: an empty one, or if *recursive* all that is in it too.

        That is one step up to 1,000 names; more are removed in several, the deepest first. Errors: ENOENT, ENOTDIR,
        ENOTEMPTY, EBUSY (the root).
        """
        spot = self._paths.find(path, follow=False)
        if spot.inode is None and missing_ok:
            return
        if spot.existing().directory is None:
            raise FsError(errno.ENOTDIR)
        if not recursive:
            await self._told(self._volume.rmdir(spot.key))
            return
        top = spot.key
        while self._is_still(top, spot.inode):
            await self._make(lambda: self._touched_below(top), lambda now_ns: self._plan_below(top, now_ns))

    def _is_still(self, key: EntryKey, inode: Inode | None) -> bool:
        return key.parent in self._tree.inodes and self._tree.child(*key) is inode

    def _below(self, top: EntryKey) -> list[EntryKey]:
        return list(islice(contents_first(self._tree, top), _REMOVED_AT_ONCE))

    def _touched_below(self, top: EntryKey) -> tuple[int, ...]:
        doomed = self._below(top)
        children = (self._tree.directory(key.parent).entries[key.name].ino for key in doomed)
        return (*(key.parent for key in doomed), *children) or (top.parent,)

    def _plan_below(self, top: EntryKey, now_ns: int) -> Change:
        return plan_remove(self._tree, self._below(top), now_ns)

    # --- the scope

    async def flush(self) -> None:
        """Make all that was acknowledged as safe as the store's fsync makes it. Raises StoreError."""
        await self._volume.drain()
        await self._volume.sync()

    async def _make(self, touched: Touched, plan: Plan) -> Change:
        return await self._told(self._volume.change(touched, plan))

    async def _told(self, making: Awaitable[Change]) -> Change:
        """Return the change that was made, once the kernel knows of it.

        A daemon that ends lets what is on its way to the store arrive: that has its own deadline. If a directory on the
        way was removed meanwhile there is nothing at the path (ENOENT), where the kernel would look again (ESTALE).
        """
        try:
            with trio.CancelScope(shield=True):
                change = await making
        except FsError as error:
            if error.errno == errno.ESTALE and not isinstance(error, StaleFile):
                raise FsError(errno.ENOENT) from None
            raise
        for op in change.ops:
            if isinstance(op, PutInode) and op.ino in self._tree.inodes:
                self._tree.inodes[op.ino].shown = True  # the caller is told when it was modified
        if change.ops:
            await self._tell(change)
        return change


def _check_expected(spot: ResolvedPath, expected_mtime_ns: int | None) -> None:
    if expected_mtime_ns is None:
        return
    actual = None if spot.inode is None else spot.inode.attributes.mtime_ns
    if actual != expected_mtime_ns:
        raise StaleFile(expected_mtime_ns, actual)


def _checked(data: bytes) -> bytes:
    if len(data) > WHOLE_MAX:
        raise too_large("write it through the mount")
    return data
