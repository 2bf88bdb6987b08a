"""What the store must get of a change that was planned against memory, where memory holds more than the store does.

Pure: it reads the tree and the ledger, and changes neither. What a change gives a name, or content, or another owner
becomes stored, with all of it and the directories above it; what happens to seeds alone stays in memory.
"""

from collections.abc import Iterator
from typing import NamedTuple

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


class Step(NamedTuple):
    """One change as *memory* takes it and as the *store* does.

    The inodes *fresh* become stored by it, the names *bared* no longer hide a stored file; *unlinked* is what that
    does to those files.
    """

    memory: Change
    store: Change
    fresh: frozenset[int] = frozenset()
    bared: tuple[EntryKey, ...] = ()
    unlinked: tuple[Op, ...] = ()


def translate(tree: Tree, ledger: SeedIndex, change: Change, now_ns: int) -> Step:
    """Return what *change*, planned at *now_ns*, means to the store of *tree* but for what is in *ledger*."""
    if not any(_concerns(ledger, op) or _moves_seeds(tree, ledger, op) for op in change.ops):
        return Step(change, change)
    return _Translation(tree, ledger, change, now_ns).step()


def _concerns(ledger: SeedIndex, op: Op) -> bool:
    """Whether *op* is not the same to the store. A seed's name never goes without its inode moving or going too."""
    if isinstance(op, DropEntry):
        return (op.parent, op.name) in ledger.shadowed
    if isinstance(op, PutEntry):
        return not ledger.homes.keys().isdisjoint((op.ino, op.parent)) or (op.parent, op.name) in ledger.shadowed
    return op.ino in ledger.homes or bool(ledger.subdirectories(op.ino))


def _moves_seeds(tree: Tree, ledger: SeedIndex, op: Op) -> bool:
    """Whether *op* gives a directory another name that is stored itself, but has seeds somewhere below."""
    moved = tree.inodes.get(op.ino) if isinstance(op, PutEntry) else None
    return moved is not None and moved.directory is not None and any(ledger.below(tree, moved.ino))


class _Translation:
    """One change being translated."""

    def __init__(self, tree: Tree, ledger: SeedIndex, change: Change, now_ns: int) -> None:
        self._tree = tree
        self._homes = ledger.homes
        self._ledger = ledger
        self._change = change
        self._now_ns = now_ns
        self._planned = {op.ino: op.attributes for op in change.ops if isinstance(op, PutInode)}
        self._dropped = {op.ino for op in change.ops if isinstance(op, DropInode)}
        self._placed = {EntryKey(op.parent, op.name): op.ino for op in change.ops if isinstance(op, PutEntry)}
        self._removed = {EntryKey(op.parent, op.name) for op in change.ops if isinstance(op, DropEntry)}
        self._fresh: dict[int, None] = {}
        self._find_fresh()

    def step(self) -> Step:
        bared = tuple(self._bared())
        unlinked = self._unlinked(bared)
        others = {op.ino for op in unlinked}
        puts = [op for op in unlinked if isinstance(op, PutInode)]
        drops = [op for op in unlinked if isinstance(op, DropInode)]
        ops = (*self._inodes(others), *puts, *self._names(), *self._content(), *self._drops(), *drops)
        store = Change(ops, self._change.grows or bool(self._fresh))
        return Step(self._in_memory(unlinked, others), store, frozenset(self._fresh), bared, unlinked)

    # --- what becomes stored

    def _find_fresh(self) -> None:
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
        while ino in self._homes and ino not in self._fresh:
            self._fresh[ino] = None
            if not self._stays(ino):
                return
            ino = self._homes[ino].parent

    def _store_whole(self, top: int) -> None:
        """Let *top* become stored, with all that lies below it."""
        inode = self._tree.inodes.get(top)
        if inode is not None and top not in self._dropped:
            self._store(top)
            for ino in () if inode.directory is None else self._ledger.below(self._tree, top):
                self._store(ino)

    def _stays(self, ino: int) -> bool:
        """Whether unstored *ino* keeps the name that it has."""
        home = self._homes[ino]
        return home not in self._removed and self._placed.get(home, ino) == ino

    # --- what lies under seeds

    def _bared(self) -> Iterator[EntryKey]:
        """Yield the names under which the store's entry goes, for another one takes its place or none does."""
        shadowed = self._ledger.shadowed
        yield from (key for key in (*self._placed, *self._removed) if key in shadowed)
        for ino in self._fresh:
            home = self._homes[ino]
            if home in shadowed and home not in self._placed and home not in self._removed:
                yield home

    def _unlinked(self, bared: tuple[EntryKey, ...]) -> tuple[PutInode | DropInode, ...]:
        """Return the stored files that were hidden under *bared*, each with so many links less."""
        draft = Draft(self._tree, self._now_ns)
        for key in bared:
            ino = self._ledger.shadowed[key].ino
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
        inos = dict.fromkeys((*self._planned, *self._fresh, *self._gaining()))
        for ino in inos:
            if ino not in others and (ino in self._fresh or ino not in self._homes):
                yield PutInode(ino, self._counted(ino))

    def _gaining(self) -> Iterator[int]:
        """Yield the directories that get a name more, as the store has it: their times and links are news to it."""
        return (self._homes[ino].parent for ino in self._fresh if self._stays(ino))

    def _counted(self, ino: int) -> Attributes:
        """Return the attributes of *ino* after the change, without the links of what stays unstored."""
        attributes = self._attributes(ino)
        hidden = sum(
            child not in self._fresh and child not in self._dropped for child in self._ledger.subdirectories(ino)
        )
        return attributes._replace(nlink=attributes.nlink - hidden) if hidden else attributes

    def _names(self) -> Iterator[PutEntry | DropEntry]:
        for op in self._change.ops:
            if isinstance(op, PutEntry) or (
                isinstance(op, DropEntry) and self._is_stored(EntryKey(op.parent, op.name))
            ):
                yield op
        for ino in self._fresh:
            parent, name = self._homes[ino]
            if self._stays(ino) and (parent, name) not in self._placed:
                yield PutEntry(parent, name, ino, self._tree.directory(parent).entries[name].cookie)

    def _is_stored(self, key: EntryKey) -> bool:
        child = self._tree.child(*key)
        return key in self._ledger.shadowed or child is None or child.ino not in self._homes

    def _content(self) -> Iterator[PutChunks | DropChunks]:
        for op in self._change.ops:
            if isinstance(op, PutChunks | DropChunks) and op.ino not in self._homes:
                yield op
        for ino in self._fresh:
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
