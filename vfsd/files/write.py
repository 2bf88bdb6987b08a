"""Changing files of a mounted scope by their paths, for the control socket.

Each call plans one change and makes it through the volume, except a recursive rmdir of many names and a move that makes
directories. The kernel forgets what it has cached of the change before the caller gets an answer: so the mount shows
the change by then. Nothing here knows the control protocol or FUSE.
"""

import errno
import os
import stat
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import NamedTuple, TypeAlias

import trio

from vfsd.errors import FsError, StaleFile
from vfsd.files.content import content_of
from vfsd.files.read import MAX_BYTES, regular_file, show, too_large
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

KernelForget: TypeAlias = Callable[[Change], Awaitable[None]]
"""Makes the kernel forget what a change made untrue. Never called while an inode is locked."""


class WriteResult(NamedTuple):
    """A file after it was written: its modification time (ns), its size (bytes), and whether it is new."""

    mtime_ns: int
    size: int
    created: bool


class WriteOptions(NamedTuple):
    """How a file is written.

    *expected_mtime_ns*: only if the file has exactly this modification time, otherwise StaleFile. *create_only*: only
    if nothing is there, otherwise EEXIST. *parents*: make missing directories. *mode*: permissions of a new file.
    """

    expected_mtime_ns: int | None = None
    create_only: bool = False
    parents: bool = False
    mode: int = 0o644


class _WriteRequest(NamedTuple):
    """A file to be written.

    *plan_existing* plans the change of a file that exists, from its inode number and the time (ns). *new_file* returns
    content and permissions for a file that does not exist.
    """

    path: bytes
    options: WriteOptions
    plan_existing: Callable[[int, int], Change]
    new_file: Callable[[], tuple[FileContent, int]]


class _Doomed(NamedTuple):
    """A directory that is being removed with everything in it: its name, and the directory itself."""

    key: EntryKey
    inode: Inode


class FileWriter:
    """Changes the files of *volume*, which holds *tree*, by *paths*. *forget* is called for every change.

    All methods raise FsError if the path cannot be followed (see :meth:`PathResolver.find`), if a rule forbids the
    change, or on a read-only mount (EROFS); and StoreError if the store fails.
    """

    def __init__(self, volume: Volume, tree: Tree, paths: PathResolver, forget: KernelForget) -> None:
        self._volume = volume
        self._tree = tree
        self._paths = paths
        self._forget = forget

    # --- writing content

    async def write(self, path: bytes, data: bytes, options: WriteOptions) -> WriteResult:
        """Replace all content of the file at *path* by *data*, or create the file, in one step.

        Errors: StaleFile, EEXIST, ENOENT (no directory), EISDIR, EINVAL (neither file nor directory), EFBIG.
        """
        content = await content_of(_checked(data))

        def plan_existing(ino: int, now_ns: int) -> Change:
            return plan_replace(self._tree, ino, content, now_ns)

        return await self._write(_WriteRequest(path, options, plan_existing, lambda: (content, options.mode)))

    async def append(self, path: bytes, data: bytes, *, parents: bool = False) -> WriteResult:
        """Append *data* to the file at *path*, or create the file with it. Errors: as for :meth:`write`."""
        content, options = await content_of(_checked(data)), WriteOptions(parents=parents)

        def plan_existing(ino: int, now_ns: int) -> Change:
            return plan_write(self._tree, ino, self._tree.inode(ino).attributes.size, data, now_ns)

        return await self._write(_WriteRequest(path, options, plan_existing, lambda: (content, options.mode)))

    async def copy(self, source: bytes, target: bytes, *, overwrite: bool = True, parents: bool = False) -> WriteResult:
        """Copy the content of the file at *source* to *target*. A new file gets the permissions of *source* too.

        Errors: as for :meth:`write`; EEXIST unless *overwrite*; EINVAL if both are the same file.
        """

        def read_source() -> tuple[FileContent, int]:
            original = regular_file(self._paths.find(source))
            if original.attributes.size > MAX_BYTES:
                raise too_large("copy it through the mount")
            return FileContent(original.attributes.size, dict(original.chunks)), original.attributes.mode

        def plan_existing(ino: int, now_ns: int) -> Change:
            if regular_file(self._paths.find(source)).ino == ino:
                raise FsError(errno.EINVAL, "source and target are the same file")
            return plan_replace(self._tree, ino, read_source()[0], now_ns)

        read_source()  # errors of the source come before errors of the target
        options = WriteOptions(create_only=not overwrite, parents=parents)
        return await self._write(_WriteRequest(target, options, plan_existing, read_source))

    async def _write(self, request: _WriteRequest) -> WriteResult:
        def plan(now_ns: int) -> Change:
            resolved = self._target(request)
            _check_expected(resolved, request.options.expected_mtime_ns)
            if resolved.inode is not None:
                return request.plan_existing(regular_file(resolved).ino, now_ns)
            if resolved.slash:
                raise FsError(errno.EISDIR)
            content, mode = request.new_file()
            file_mode = stat.S_IFREG | (mode & PERMISSIONS)
            return self._plan_new(resolved, file_mode, content, request.options, now_ns)

        change = await self._change(lambda: _touched(self._target(request)), plan)
        return self._result(change, request)

    def _target(self, request: _WriteRequest) -> ResolvedPath:
        """Return where to write. With *create_only* a symbolic link that leads nowhere exists too, as for O_EXCL."""
        resolved = self._paths.find(request.path, follow=not request.options.create_only)
        if request.options.create_only and resolved.inode is not None:
            raise FsError(errno.EEXIST)
        return resolved

    def _result(self, change: Change, request: _WriteRequest) -> WriteResult:
        """Return the file as *change* left it: another change may have followed.

        An append of nothing has an empty change: then the file is as the tree has it.
        """
        files = [op.attributes for op in change.ops if isinstance(op, PutInode) and op.attributes.is_regular]
        created = any(isinstance(op, PutEntry) for op in change.ops)
        attributes = files[-1] if files else show(regular_file(self._paths.find(request.path)))
        return WriteResult(attributes.mtime_ns, attributes.size, created)

    def _plan_new(
        self, resolved: ResolvedPath, mode: int, content: FileContent, options: WriteOptions, now_ns: int
    ) -> Change:
        """Plan to create what is missing at *resolved*: directories if *options* allow it, and the last with *mode*."""
        if len(resolved.missing) > 1 and not options.parents:
            raise FsError(errno.ENOENT)
        *above, last = resolved.missing
        directories = [self._new_entry(name, stat.S_IFDIR | _DIRECTORY_MODE) for name in above]
        entries = [*directories, self._new_entry(last, mode)]
        return plan_create_path(self._tree, resolved.parent, entries, content, now_ns)

    def _new_entry(self, name: bytes, mode: int) -> NewEntry:
        return NewEntry(name, self._tree.allocate(), NewInode(mode, os.geteuid(), os.getegid()))

    # --- changing names

    async def delete(self, path: bytes, *, missing_ok: bool = False) -> bool:
        """Remove a file that is not a directory. Return whether it was there. Errors: ENOENT, EISDIR."""
        resolved = self._paths.find(path, follow=False)
        if resolved.inode is None and missing_ok:
            return False
        resolved.existing()
        await self._finish(self._volume.unlink(resolved.key))
        return True

    async def move(self, source: bytes, target: bytes, *, overwrite: bool = True, parents: bool = False) -> None:
        """Move *source* to *target*, and replace what is there (:manpage:`rename(2)`).

        Errors: ENOENT, EEXIST unless *overwrite*, EISDIR, ENOTDIR, ENOTEMPTY, EINVAL (a directory into itself), EBUSY.
        """
        moved = self._paths.find(source, follow=False)
        moved.existing()
        resolved = self._paths.find(target, follow=False)
        if len(resolved.missing) > 1 and parents:
            await self.mkdir(b"/".join((b"", *resolved.names[:-1])), parents=True)
            resolved = self._paths.find(target, follow=False)
        await self._finish(self._volume.rename(moved.key, resolved.key, 0 if overwrite else RENAME_NOREPLACE))

    async def mkdir(self, path: bytes, *, parents: bool = False, mode: int = _DIRECTORY_MODE) -> bool:
        """Make a directory, and return whether it is new.

        With *parents* missing directories above it are made too, and a directory that exists is not an error.
        Errors: EEXIST, ENOENT.
        """

        def plan(now_ns: int) -> Change:
            resolved = self._paths.find(path, follow=parents)
            if resolved.inode is None:
                directory_mode = stat.S_IFDIR | (mode & PERMISSIONS)
                return self._plan_new(resolved, directory_mode, FileContent(), WriteOptions(parents=parents), now_ns)
            if not parents or resolved.inode.directory is None:
                raise FsError(errno.EEXIST)
            return NOTHING

        change = await self._change(lambda: _touched(self._paths.find(path, follow=parents)), plan)
        return bool(change.ops)

    async def rmdir(self, path: bytes, *, recursive: bool = False, missing_ok: bool = False) -> None:
        """Remove an empty directory, or with *recursive* a directory and everything in it.

        Up to 1,000 names are removed in one change. More take several changes; what a directory contains goes first.
        Errors: ENOENT, ENOTDIR, ENOTEMPTY, EBUSY (the root).
        """
        resolved = self._paths.find(path, follow=False)
        if resolved.inode is None and missing_ok:
            return
        if resolved.existing().directory is None:
            raise FsError(errno.ENOTDIR)
        if not recursive:
            await self._finish(self._volume.rmdir(resolved.key))
            return
        doomed = _Doomed(resolved.key, resolved.existing())
        while self._is_there(doomed):
            await self._change(lambda: self._touched_below(doomed), lambda now_ns: self._plan_remove(doomed, now_ns))

    def _is_there(self, doomed: _Doomed) -> bool:
        """Whether the directory still has its name. Something else may have it after a wait: that stays."""
        return doomed.key.parent in self._tree.inodes and self._tree.child(*doomed.key) is doomed.inode

    def _next_removed(self, doomed: _Doomed) -> list[EntryKey]:
        """Return the keys to remove next: an entry is removed only after everything below it."""
        return list(islice(contents_first(self._tree, doomed.key), _REMOVED_AT_ONCE)) if self._is_there(doomed) else []

    def _touched_below(self, doomed: _Doomed) -> tuple[int, ...]:
        removed = self._next_removed(doomed)
        children = (self._tree.directory(key.parent).entries[key.name].ino for key in removed)
        return (*(key.parent for key in removed), *children) or (doomed.key.parent,)

    def _plan_remove(self, doomed: _Doomed, now_ns: int) -> Change:
        return plan_remove(self._tree, self._next_removed(doomed), now_ns)

    # --- the scope

    async def flush(self) -> None:
        """Store every truncation that waits, and do what the store's fsync does. Raises StoreError."""
        await self._volume.drain()
        await self._volume.sync()

    async def _change(self, touched: Touched, plan: Plan) -> Change:
        return await self._finish(self._volume.change(touched, plan))

    async def _finish(self, change_under_way: Awaitable[Change]) -> Change:
        """Return the change once it is made and the kernel has forgotten what is untrue by then.

        Cancellation does not interrupt the commit, which has a deadline of its own. If a directory of the path was
        removed meanwhile, nothing is at the path: that is ENOENT. (For ESTALE the kernel would look the path up again.)
        """
        try:
            with trio.CancelScope(shield=True):
                change = await change_under_way
        except FsError as error:
            if error.errno == errno.ESTALE and not isinstance(error, StaleFile):
                raise FsError(errno.ENOENT) from None
            raise
        for op in change.ops:
            if isinstance(op, PutInode) and op.ino in self._tree.inodes:
                self._tree.inodes[op.ino].shown = True  # the answer contains its modification time
        if change.ops:
            await self._forget(change)
        return change


def _touched(resolved: ResolvedPath) -> tuple[int, ...]:
    """Return the inode to lock for a change at *resolved*: what is there, or the directory that gets a new name."""
    return (resolved.parent if resolved.inode is None else resolved.inode.ino,)


def _check_expected(resolved: ResolvedPath, expected_mtime_ns: int | None) -> None:
    if expected_mtime_ns is None:
        return
    actual = None if resolved.inode is None else resolved.inode.attributes.mtime_ns
    if actual != expected_mtime_ns:
        raise StaleFile(expected_mtime_ns, actual)


def _checked(data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        raise too_large("write it through the mount")
    return data
