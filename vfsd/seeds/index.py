"""What of a tree is not stored: seeded inodes, and the stored entries that they hide. It plans nothing.

An unstored inode has exactly one name, its *home*: whatever gives it another name makes it a stored one. An entry is
stored if its inode is stored. The exception are *shadowed* entries: only the store has them, under a name that a seed
has taken.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from vfsd.seeds.below import Below
from vfsd.tree.inode import Entry, Inode
from vfsd.tree.plan_names import EntryKey
from vfsd.tree.tree import Tree


class SeedIndex:
    """What of *tree* is not stored: ``homes`` by unstored inode, and ``shadowed`` entries by their key.

    ``content_bytes`` is how much content the unstored inodes hold.
    """

    def __init__(self, tree: Tree) -> None:
        self.homes: dict[int, EntryKey] = {}
        self.shadowed: dict[EntryKey, Entry] = {}
        self.content_bytes = 0
        self._sizes: dict[int, int] = {}
        self._subdirectories: dict[int, set[int]] = {}
        self._at: dict[int, dict[int, None]] = {}
        """The unstored inodes by the directories of their homes."""
        self._parents = Below(tree)
        """The directories of the homes. Moving a directory makes all seeds below it stored, so none of them moves."""
        self._hidden: dict[int, set[EntryKey]] = {}
        """The keys of the shadowed entries, by the inode that they lead to."""

    def add(self, inode: Inode, home: EntryKey) -> None:
        """Add an inode that only memory has."""
        self.homes[inode.ino] = home
        self._at.setdefault(home.parent, {})[inode.ino] = None
        self._parents.add(home.parent)
        size = sum(map(len, inode.chunks.values()))
        self._sizes[inode.ino] = size
        self.content_bytes += size
        if inode.directory is not None:
            self._subdirectories.setdefault(home.parent, set()).add(inode.ino)

    def discard(self, ino: int) -> None:
        """Remove an inode, if it is here: it is stored now, or gone."""
        home = self.homes.pop(ino, None)
        if home is None:
            return
        self.content_bytes -= self._sizes.pop(ino)
        self._drop_from_directory(ino, home.parent)
        siblings = self._subdirectories.get(home.parent, set())
        siblings.discard(ino)
        if not siblings:
            self._subdirectories.pop(home.parent, None)

    def _drop_from_directory(self, ino: int, parent: int) -> None:
        others = self._at[parent]
        del others[ino]
        if not others:
            del self._at[parent]
            self._parents.discard(parent)

    def hide(self, key: EntryKey, entry: Entry) -> None:
        """Record that a seed hides the stored *entry* at *key*."""
        self.uncover(key)
        self.shadowed[key] = entry
        self._hidden.setdefault(entry.ino, set()).add(key)

    def uncover(self, key: EntryKey) -> None:
        """Record that nothing is hidden at *key* any longer."""
        entry = self.shadowed.pop(key, None)
        if entry is not None:
            keys = self._hidden[entry.ino]
            keys.discard(key)
            if not keys:
                del self._hidden[entry.ino]

    def hidden_at(self, ino: int) -> AbstractSet[EntryKey]:
        """Return the keys at which seeds hide stored inode *ino*."""
        return self._hidden.get(ino, frozenset())

    def truncated(self, ino: int) -> None:
        """Record that file *ino* has lost its content, if it is here."""
        if ino in self.homes:
            self.content_bytes -= self._sizes[ino]
            self._sizes[ino] = 0

    def subdirectories(self, ino: int) -> AbstractSet[int]:
        """Return the unstored directories whose home is directory *ino*: the store must not count their links."""
        return self._subdirectories.get(ino, frozenset())

    def above(self, ino: int) -> Iterator[int]:
        """Yield the directories above unstored inode *ino*. The last one is the first that is stored."""
        while ino in self.homes:
            ino = self.homes[ino].parent
            yield ino

    def below(self, top: int) -> Iterator[int]:
        """Yield the unstored inodes that lie below directory *top*, at any depth."""
        for parent in self._parents.at_or_below(top):
            yield from self._at[parent]

    def touched(self, inos: tuple[int, ...]) -> list[int]:
        """Return what a change of *inos* also touches: directories that become stored, and files that it uncovers."""
        more: list[int] = []
        for ino in inos:
            if ino in self.homes:
                more += self.above(ino)
                shadow = self.shadowed.get(self.homes[ino])
                more += () if shadow is None else (shadow.ino,)
        return more
