"""Planning changes of names: create, link, unlink, rmdir and rename, by the rules of POSIX and Linux.

The kernel checks permissions (``default_permissions``). Everything else is checked here. Sources:
:manpage:`open(2)`, :manpage:`link(2)`, :manpage:`unlink(2)`, :manpage:`rmdir(2)`, :manpage:`rename(2)`.
"""

import errno
import stat
from typing import NamedTuple

from vfsd.errors import FsError
from vfsd.tree.change import Attributes, Change
from vfsd.tree.draft import Draft, check_name, linked_directory
from vfsd.tree.inode import Inode
from vfsd.tree.tree import Tree

RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2
RENAME_WHITEOUT = 4
_RENAME_FLAGS = RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT


class EntryKey(NamedTuple):
    """A name in directory *parent*. There may or may not be an entry under it."""

    parent: int
    name: bytes


class Whiteout(NamedTuple):
    """The inode that a rename leaves at the source if RENAME_WHITEOUT asks for it: its number, and its owner.

    A whiteout is a character device 0:0. An overlay of Linux takes it for "deleted" (linux/fs/overlayfs).
    """

    ino: int
    uid: int
    gid: int


class NewInode(NamedTuple):
    """What the caller decides about a new inode.

    *mode* is type and permissions, with the umask applied; *rdev* the device; *target* the target of a symbolic link.
    """

    mode: int
    uid: int
    gid: int
    rdev: int = 0
    target: bytes = b""


def plan_create(tree: Tree, key: EntryKey, ino: int, new: NewInode, now_ns: int) -> Change:
    """Plan a new inode *ino* at *key*. Errors: EEXIST, ENAMETOOLONG, ENOENT, ENOTDIR, ESTALE."""
    parent, name = key
    check_free(tree, key)
    draft = Draft(tree, now_ns)
    attributes = first_attributes(draft.attributes(parent), new, now_ns)
    draft.modify(parent)
    if attributes.is_directory:
        draft.count_link(parent, +1)
    draft.add(ino, attributes)
    draft.put_entry(parent, name, ino)
    return draft.change(grows=True)


def first_attributes(parent: Attributes, new: NewInode, now_ns: int) -> Attributes:
    """Return the attributes of a new inode in the directory that has the attributes *parent*.

    A new inode inherits the group of a set-group-ID directory, and a new directory also inherits that bit. The kernel
    leaves this to the FUSE daemon.
    """
    mode, gid = new.mode, new.gid
    if parent.mode & stat.S_ISGID:
        gid = parent.gid
        mode |= stat.S_ISGID if stat.S_ISDIR(mode) else 0
    nlink = 2 if stat.S_ISDIR(mode) else 1
    return Attributes(mode, nlink, new.uid, gid, new.rdev, len(new.target), now_ns, now_ns, now_ns, new.target)


def plan_link(tree: Tree, ino: int, key: EntryKey, now_ns: int) -> Change:
    """Plan another name for *ino* at *key*.

    Errors: EEXIST, EPERM (directories), ENOENT (no name left), ENAMETOOLONG, ENOTDIR, ESTALE.
    """
    inode = tree.inode(ino)
    if inode.directory is not None:
        raise FsError(errno.EPERM)
    check_free(tree, key)
    if inode.is_orphan:
        raise FsError(errno.ENOENT)
    draft = Draft(tree, now_ns)
    draft.count_link(ino, +1)
    draft.modify(key.parent)
    draft.put_entry(key.parent, key.name, ino)
    return draft.change(grows=True)


def check_free(tree: Tree, key: EntryKey) -> None:
    """Refuse *key* if nothing can be created there. Errors: EEXIST, ENAMETOOLONG, ENOENT, ENOTDIR, ESTALE."""
    check_name(key.name)
    if key.name in linked_directory(tree, key.parent).entries:
        raise FsError(errno.EEXIST)


def plan_unlink(tree: Tree, key: EntryKey, now_ns: int) -> Change:
    """Plan to remove a name of a file that is not a directory. Errors: ENOENT, EISDIR, ENOTDIR, ESTALE."""
    child = _existing(tree, key)
    if child.directory is not None:
        raise FsError(errno.EISDIR)
    draft = Draft(tree, now_ns)
    draft.modify(key.parent)
    draft.drop_entry(key.parent, key.name)
    draft.unlink(child.ino)
    return draft.change(grows=False)


def plan_rmdir(tree: Tree, key: EntryKey, now_ns: int) -> Change:
    """Plan to remove an empty directory. Errors: ENOENT, ENOTDIR, ENOTEMPTY, ESTALE."""
    child = _existing(tree, key)
    if child.directory is None:
        raise FsError(errno.ENOTDIR)
    if child.directory.entries:
        raise FsError(errno.ENOTEMPTY)
    draft = Draft(tree, now_ns)
    draft.modify(key.parent)
    draft.count_link(key.parent, -1)
    draft.drop_entry(key.parent, key.name)
    draft.unlink(child.ino)
    return draft.change(grows=False)


def _existing(tree: Tree, key: EntryKey) -> Inode:
    check_name(key.name)
    child = tree.child(key.parent, key.name)
    if child is None:
        raise FsError(errno.ENOENT)
    return child


def plan_rename(  # noqa: PLR0913, PLR0917 (as the system call, and the time)
    tree: Tree, source: EntryKey, target: EntryKey, flags: int, now_ns: int, whiteout: Whiteout | None = None
) -> Change:
    """Plan to move *source* to *target*, and to replace or exchange what is there (:manpage:`renameat2(2)`).

    *whiteout* goes with RENAME_WHITEOUT: what that leaves at the source, in the same change. If both are names of one
    inode, nothing happens: POSIX demands that. Errors: EINVAL (unknown or contradictory *flags*, a directory into
    itself), ENOENT, EEXIST, EISDIR, ENOTDIR, ENOTEMPTY, ENAMETOOLONG, ESTALE.
    """
    leaves_whiteout = bool(flags & RENAME_WHITEOUT)
    contradicts = (flags & RENAME_EXCHANGE and flags != RENAME_EXCHANGE) or leaves_whiteout != (whiteout is not None)
    if flags & ~_RENAME_FLAGS or contradicts:
        raise FsError(errno.EINVAL)
    check_name(target.name)
    moved = _existing(tree, source)
    linked_directory(tree, target.parent)
    replaced = tree.child(*target)
    if replaced is not None and flags & RENAME_NOREPLACE:
        raise FsError(errno.EEXIST)
    if replaced is moved:
        return Change((), grows=False)
    _check_not_below(tree, moved, target)
    if flags == RENAME_EXCHANGE:
        return _plan_exchange(tree, (source, moved), (target, replaced), now_ns)
    if replaced is not None:
        _check_replaceable(moved, replaced)
    draft = _draft_move(tree, (source, moved), (target, replaced), now_ns)
    if whiteout is None:
        draft.drop_entry(*source)
    else:
        new = NewInode(stat.S_IFCHR, whiteout.uid, whiteout.gid)
        draft.add(whiteout.ino, first_attributes(draft.attributes(source.parent), new, now_ns))
        draft.put_entry(*source, whiteout.ino)
    draft.put_entry(*target, moved.ino)
    return draft.change(grows=whiteout is not None)


def _check_not_below(tree: Tree, moved: Inode, target: EntryKey) -> None:
    if moved.directory is not None and tree.is_below(target.parent, moved.ino):
        raise FsError(errno.EINVAL)


def _check_replaceable(moved: Inode, replaced: Inode) -> None:
    if replaced.directory is None:
        if moved.directory is not None:
            raise FsError(errno.ENOTDIR)
        return
    if moved.directory is None:
        raise FsError(errno.EISDIR)
    if replaced.directory.entries:
        raise FsError(errno.ENOTEMPTY)


def _draft_move(
    tree: Tree, source: tuple[EntryKey, Inode], target: tuple[EntryKey, Inode | None], now_ns: int
) -> Draft:
    """Return a draft of a move, without its two entries."""
    (old, moved), (new, replaced) = source, target
    draft = Draft(tree, now_ns)
    draft.modify(old.parent)
    draft.modify(new.parent)
    if moved.directory is not None:
        draft.count_link(old.parent, -1)
        draft.count_link(new.parent, +1)
    if replaced is not None:
        if replaced.directory is not None:
            draft.count_link(new.parent, -1)
        draft.unlink(replaced.ino)
    draft.update(moved.ino)
    return draft


def _plan_exchange(
    tree: Tree, source: tuple[EntryKey, Inode], target: tuple[EntryKey, Inode | None], now_ns: int
) -> Change:
    (old, moved), (new, other) = source, target
    if other is None:
        raise FsError(errno.ENOENT)
    _check_not_below(tree, other, old)
    draft = Draft(tree, now_ns)
    draft.modify(old.parent)
    draft.modify(new.parent)
    for inode, key, destination in ((moved, old, new), (other, new, old)):
        draft.update(inode.ino)
        if inode.directory is not None:
            draft.count_link(key.parent, -1)
            draft.count_link(destination.parent, +1)
    draft.put_entry(*new, moved.ino)
    draft.put_entry(*old, other.ino)
    return draft.change(grows=False)
