"""What the store must get of a change, while memory holds seeds that the store does not have.

Pure: it reads the tree and the index and changes neither. A seed becomes stored when a change gives it a name, content
or attributes: whole, with the directories above it. What happens to seeds alone stays in memory.
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
    """The effects of a change that concerns seeds.

    The names *uncovered* hide no stored file any longer.
    """

    uncovered: tuple[EntryKey, ...] = ()


def translate(tree: Tree, index: SeedIndex, change: Change, now_ns: int) -> Effects:
    """Return what *change*, planned at *now_ns*, does to *tree* and to its store, which lacks what is in *index*."""
    if not any(_concerns(index, op) or _moves_seeds(tree, index, op) for op in change.ops):
        return Effects(change, change)
    return _Translation(tree, index, change, now_ns).effects()


def _concerns(index: SeedIndex, op: Op) -> bool:
    """Whether *op* is not the same to the store. A seed's name never goes without its inode moving or going too."""
    if isinstance(op, DropEntry):
        return (op.parent, op.name) in index.shadowed
    if isinstance(op, PutEntry):
        return not index.homes.keys().isdisjoint((op.ino, op.parent)) or (op.parent, op.name) in index.shadowed
    return op.ino in index.homes or bool(index.subdirectories(op.ino))


def _moves_seeds(tree: Tree, index: SeedIndex, op: Op) -> bool:
    """Whether *op* gives a directory another name that is stored itself, but has seeds somewhere below."""
    moved = tree.inodes.get(op.ino) if isinstance(op, PutEntry) else None
    return moved is not None and moved.directory is not None and any(index.below(tree, moved.ino))


class _Translation:
    """One change being translated."""

    def __init__(self, tree: Tree, index: SeedIndex, change: Change, now_ns: int) -> None:
        self._tree = tree
        self._homes = index.homes
        self._index = index
        self._change = change
        self._now_ns = now_ns
        self._planned = {op.ino: op.attributes for op in change.ops if isinstance(op, PutInode)}
        self._dropped = {op.ino for op in change.ops if isinstance(op, DropInode)}
        self._placed = {EntryKey(op.parent, op.name): op.ino for op in change.ops if isinstance(op, PutEntry)}
        self._removed = {EntryKey(op.parent, op.name) for op in change.ops if isinstance(op, DropEntry)}
        self._newly_stored: dict[int, None] = {}
        self._find_newly_stored()

    def effects(self) -> SeedEffects:
        uncovered = tuple(self._uncovered())
        unlinked = self._unlinked(uncovered)
        others = {op.ino for op in unlinked}
        puts = [op for op in unlinked if isinstance(op, PutInode)]
        drops = [op for op in unlinked if isinstance(op, DropInode)]
        ops = (*self._inodes(others), *puts, *self._names(), *self._content(), *self._drops(), *drops)
        store = Change(ops, self._change.grows or bool(self._newly_stored))
        memory = self._in_memory(unlinked, others)
        return SeedEffects(memory, store, frozenset(self._newly_stored), unlinked, uncovered)

    # --- what becomes stored

    def _find_newly_stored(self) -> None:
        for op in self._change.ops:
            if isinstance(op, PutInode) and op.ino in self._homes and self._is_told(op):
                self._store(op.ino)
            elif isinstance(op, PutEntry):
                self._store_whole(op.ino)
                self._store(op.parent)

    def _is_told(self, op: PutInode) -> bool:
        """Whether the store has to hear of *op*: of a directory not if only what it contains has changed."""
        return not op.attributes.is_directory or _lasting(op.attributes) != _lasting(self._present(op.ino))

    def _store(self, ino: int) -> None:
        """Let *ino* become stored, with the directories above it, if it is not yet."""
        while ino in self._homes and ino not in self._newly_stored:
            self._newly_stored[ino] = None
            if not self._stays(ino):
                return
            ino = self._homes[ino].parent

    def _store_whole(self, top: int) -> None:
        """Let *top* become stored, with all that lies below it."""
        inode = self._tree.inodes.get(top)
        if inode is not None and top not in self._dropped:
            self._store(top)
            for ino in () if inode.directory is None else self._index.below(self._tree, top):
                self._store(ino)

    def _stays(self, ino: int) -> bool:
        """Whether unstored *ino* keeps the name that it has."""
        home = self._homes[ino]
        return home not in self._removed and self._placed.get(home, ino) == ino

    # --- what lies under seeds

    def _uncovered(self) -> Iterator[EntryKey]:
        """Yield the names under which the store's entry goes, for another one takes its place or none does."""
        shadowed = self._index.shadowed
        yield from (key for key in (*self._placed, *self._removed) if key in shadowed)
        for ino in self._newly_stored:
            home = self._homes[ino]
            if home in shadowed and home not in self._placed and home not in self._removed:
                yield home

    def _unlinked(self, uncovered: tuple[EntryKey, ...]) -> tuple[PutInode | DropInode, ...]:
        """Return the stored files that were hidden under *uncovered*, each with so many links less."""
        draft = Draft(self._tree, self._now_ns)
        for key in uncovered:
            ino = self._index.shadowed[key].ino
            if draft.attributes(ino) is self._tree.inode(ino).attributes:
                draft.add(ino, self._attributes(ino))
            draft.unlink(ino)
        return tuple(op for op in draft.change(grows=False).ops if isinstance(op, PutInode | DropInode))

    def _in_memory(self, unlinked: tuple[Op, ...], others: set[int]) -> Change:
        if not unlinked:
            return self._change
        planned = (op for op in self._change.ops if not (isinstance(op, PutInode) and op.ino in others))
        return Change((*planned, *unlinked), self._change.grows)

    # --- what the store gets

    def _inodes(self, others: set[int]) -> Iterator[PutInode]:
        inos = dict.fromkeys((*self._planned, *self._newly_stored, *self._gaining()))
        for ino in inos:
            if ino not in others and (ino in self._newly_stored or ino not in self._homes):
                yield PutInode(ino, self._counted(ino))

    def _gaining(self) -> Iterator[int]:
        """Yield the directories that get a name more, as the store has it: their times and links are news to it."""
        return (self._homes[ino].parent for ino in self._newly_stored if self._stays(ino))

    def _counted(self, ino: int) -> Attributes:
        """Return the attributes of *ino* after the change, without the links of what stays unstored."""
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
            if self._stays(ino) and (parent, name) not in self._placed:
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


def _lasting(attributes: Attributes) -> tuple[object, ...]:
    """Return what of a directory does not follow from what it contains, or from when that changed."""
    return attributes.mode, attributes.uid, attributes.gid, attributes.xattrs
