"""Translating a change of memory into the change that the store must get, while memory holds seeds.

A seed becomes stored when a change gives it a name, content or attributes. Then the store gets all of it, and the
seeded directories above it. Any other change of seeds alone stays in memory. Nothing here changes the tree or the
index.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from vfsd.scope.hooks import Effects
from vfsd.seeds.index import SeedIndex
from vfsd.tree.change import (
    Attributes,
    Change,
    Chunk,
    DropChunks,
    DropEntry,
    DropInode,
    Op,
    PutChunks,
    PutEntry,
    PutInode,
)
from vfsd.tree.draft import Draft
from vfsd.tree.plan_names import EntryKey
from vfsd.tree.tree import Tree


@dataclass(slots=True)
class SeedEffects(Effects):
    """The effects of a change that concerns seeds. Entries at the keys *uncovered* are not shadowed any longer."""

    uncovered: tuple[EntryKey, ...] = ()


def translate(tree: Tree, index: SeedIndex, change: Change, now_ns: int) -> Effects:
    """Return what *change*, planned at *now_ns*, does to *tree* and to the store, which lacks the seeds in *index*."""
    if not any(_concerns(index, op) or _moves_seeds(tree, index, op) for op in change.ops):
        return Effects(change, change)
    return _Translation(tree, index, change, now_ns).effects()


def _concerns(index: SeedIndex, op: Op) -> bool:
    """Whether the store must get something other than *op*.

    An operation that drops the name of a seed never comes alone: the same change renames or removes its inode.
    """
    if isinstance(op, DropEntry):
        return (op.parent, op.name) in index.shadowed
    if isinstance(op, PutEntry):
        return not index.homes.keys().isdisjoint((op.ino, op.parent)) or (op.parent, op.name) in index.shadowed
    return op.ino in index.homes or bool(index.subdirectories(op.ino))


def _moves_seeds(tree: Tree, index: SeedIndex, op: Op) -> bool:
    """Whether *op* gives another name to a directory that has seeds below it. The directory itself may be stored."""
    moved = tree.inodes.get(op.ino) if isinstance(op, PutEntry) else None
    return moved is not None and moved.directory is not None and any(index.below(moved.ino))


class _Translation:
    """Translates one change."""

    def __init__(self, tree: Tree, index: SeedIndex, change: Change, now_ns: int) -> None:
        self._tree = tree
        self._homes = index.homes
        self._index = index
        self._change = change
        self._now_ns = now_ns
        self._planned = {op.ino: op.attributes for op in change.ops if isinstance(op, PutInode)}
        self._dropped = {op.ino for op in change.ops if isinstance(op, DropInode)}
        self._put_keys = {EntryKey(op.parent, op.name): op.ino for op in change.ops if isinstance(op, PutEntry)}
        self._dropped_keys = {EntryKey(op.parent, op.name) for op in change.ops if isinstance(op, DropEntry)}
        self._newly_stored: dict[int, None] = {}
        self._find_newly_stored()

    def effects(self) -> SeedEffects:
        """Return what the change does to memory and to the store."""
        uncovered = tuple(self._uncovered())
        unlinked = self._unlinked(uncovered)
        unlinked_inos = {op.ino for op in unlinked}
        puts = [op for op in unlinked if isinstance(op, PutInode)]
        drops = [op for op in unlinked if isinstance(op, DropInode)]
        ops = (*self._inodes(unlinked_inos), *puts, *self._names(), *self._content(), *self._drops(), *drops)
        store = Change(ops, self._change.grows or bool(self._newly_stored))
        memory = self._in_memory(unlinked, unlinked_inos)
        return SeedEffects(memory, store, frozenset(self._newly_stored), unlinked, uncovered)

    # --- what becomes stored

    def _find_newly_stored(self) -> None:
        for op in self._change.ops:
            if isinstance(op, PutInode) and op.ino in self._homes and self._makes_stored(op):
                self._add_newly_stored(op.ino)
            elif isinstance(op, PutEntry):
                self._add_subtree(op.ino)
                self._add_newly_stored(op.parent)

    def _makes_stored(self, op: PutInode) -> bool:
        """Whether *op* makes a seed stored. New times or links of a directory alone do not."""
        return not op.attributes.is_directory or _set_attributes(op.attributes) != _set_attributes(
            self._present(op.ino)
        )

    def _add_newly_stored(self, ino: int) -> None:
        """Add *ino* to what becomes stored, with the directories above it, if it is not stored yet."""
        while ino in self._homes and ino not in self._newly_stored:
            self._newly_stored[ino] = None
            if not self._keeps_name(ino):
                return
            ino = self._homes[ino].parent

    def _add_subtree(self, top: int) -> None:
        """Add *top*, and all seeds below it, to what becomes stored."""
        inode = self._tree.inodes.get(top)
        if inode is not None and top not in self._dropped:
            self._add_newly_stored(top)
            for ino in () if inode.directory is None else self._index.below(top):
                self._add_newly_stored(ino)

    def _keeps_name(self, ino: int) -> bool:
        """Whether seed *ino* still has its name after the change."""
        home = self._homes[ino]
        return home not in self._dropped_keys and self._put_keys.get(home, ino) == ino

    # --- stored entries that seeds hide

    def _uncovered(self) -> Iterator[EntryKey]:
        """Yield the keys at which the store replaces or removes an entry that a seed hides."""
        shadowed = self._index.shadowed
        yield from (key for key in (*self._put_keys, *self._dropped_keys) if key in shadowed)
        for ino in self._newly_stored:
            home = self._homes[ino]
            if home in shadowed and home not in self._put_keys and home not in self._dropped_keys:
                yield home

    def _unlinked(self, uncovered: tuple[EntryKey, ...]) -> tuple[PutInode | DropInode, ...]:
        """Return the operations by which the stored files hidden at *uncovered* lose these links."""
        draft = Draft(self._tree, self._now_ns)
        for key in uncovered:
            ino = self._index.shadowed[key].ino
            if draft.attributes(ino) is self._tree.inode(ino).attributes:  # not in the draft yet
                draft.add(ino, self._attributes(ino))  # with what the change itself does to it
            draft.unlink(ino)
        return tuple(op for op in draft.change(grows=False).ops if isinstance(op, PutInode | DropInode))

    def _in_memory(self, unlinked: tuple[Op, ...], unlinked_inos: set[int]) -> Change:
        """Return what memory gets. *unlinked* replace the operations of the change on the same inodes."""
        if not unlinked:
            return self._change
        planned = (op for op in self._change.ops if not (isinstance(op, PutInode) and op.ino in unlinked_inos))
        return Change((*planned, *unlinked), self._change.grows)

    # --- what the store gets

    def _inodes(self, unlinked_inos: set[int]) -> Iterator[PutInode]:
        inos = dict.fromkeys((*self._planned, *self._newly_stored, *self._parents_of_new_names()))
        for ino in inos:
            if ino not in unlinked_inos and (ino in self._newly_stored or ino not in self._homes):
                yield PutInode(ino, self._stored_attributes(ino))

    def _parents_of_new_names(self) -> Iterator[int]:
        """Yield the directories that have one more name in the store: the store needs their times and links too."""
        return (self._homes[ino].parent for ino in self._newly_stored if self._keeps_name(ino))

    def _stored_attributes(self, ino: int) -> Attributes:
        """Return the attributes of *ino* after the change, without the links of subdirectories that stay unstored."""
        attributes = self._attributes(ino)
        hidden = sum(
            child not in self._newly_stored and child not in self._dropped for child in self._index.subdirectories(ino)
        )
        return attributes._replace(nlink=attributes.nlink - hidden) if hidden else attributes

    def _names(self) -> Iterator[PutEntry | DropEntry]:
        for op in self._change.ops:
            if isinstance(op, PutEntry) or (
                isinstance(op, DropEntry) and self._is_stored(EntryKey(op.parent, op.name))
            ):
                yield op
        for ino in self._newly_stored:
            parent, name = self._homes[ino]
            if self._keeps_name(ino) and (parent, name) not in self._put_keys:
                yield PutEntry(parent, name, ino, self._tree.directory(parent).entries[name].cookie)

    def _is_stored(self, key: EntryKey) -> bool:
        child = self._tree.child(*key)
        return key in self._index.shadowed or child is None or child.ino not in self._homes

    def _content(self) -> Iterator[PutChunks | DropChunks]:
        for op in self._change.ops:
            if isinstance(op, PutChunks | DropChunks) and op.ino not in self._homes:
                yield op
        for ino in self._newly_stored:
            chunks = self._chunks(ino)
            if chunks:
                yield PutChunks(ino, chunks)

    def _chunks(self, ino: int) -> dict[int, Chunk]:
        """Return all content of *ino* after the change."""
        chunks: dict[int, Chunk] = dict(self._tree.inode(ino).chunks)
        for op in self._change.ops:
            if isinstance(op, PutChunks) and op.ino == ino:
                chunks.update(op.chunks)
            elif isinstance(op, DropChunks) and op.ino == ino:
                for number in tuple(chunks) if op.numbers is None else op.numbers:
                    chunks.pop(number, None)
        return chunks

    def _drops(self) -> Iterator[DropInode]:
        return (op for op in self._change.ops if isinstance(op, DropInode) and op.ino not in self._homes)

    # --- attributes

    def _present(self, ino: int) -> Attributes:
        return self._tree.inode(ino).attributes

    def _attributes(self, ino: int) -> Attributes:
        planned = self._planned.get(ino)
        return self._present(ino) if planned is None else planned


def _set_attributes(attributes: Attributes) -> tuple[object, ...]:
    """Return the attributes of a directory that somebody sets: changes of its entries leave them alone."""
    return attributes.mode, attributes.uid, attributes.gid, attributes.xattrs
