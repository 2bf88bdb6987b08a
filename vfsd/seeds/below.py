"""Which of some inodes lie at or below a directory: an answer that does not take longer the more of them there are.

Every file that is made and every directory that is renamed asks this of seeds and skills, so the cost must not grow
with those that lie elsewhere.
"""

from collections.abc import Collection, Iterator

from vfsd.tree.change import ROOT
from vfsd.tree.tree import Tree

_NONE: dict[int, None] = {}


def and_above(tree: Tree, ino: int) -> Iterator[int]:
    """Yield directory *ino*, and the directories above it up to the root."""
    while ino != ROOT:
        yield ino
        ino = tree.directory(ino).parent
    yield ROOT


class Below:
    """Directories of *tree*, found by each directory above them.

    A member is found below the directories that were above it when it was added. So whoever moves one of these must
    discard the members below it, and may add them again.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._above: dict[int, tuple[int, ...]] = {}
        self._members: dict[int, dict[int, None]] = {}

    def add(self, ino: int) -> None:
        """Add directory *ino*, if it is not a member yet."""
        if ino not in self._above:
            above = self._above[ino] = tuple(and_above(self._tree, ino))
            for each in above:
                self._members.setdefault(each, {})[ino] = None

    def discard(self, ino: int) -> None:
        """Remove directory *ino*, if it is a member. The tree need not have it any longer."""
        for each in self._above.pop(ino, ()):
            members = self._members[each]
            del members[ino]
            if not members:
                del self._members[each]

    def at_or_below(self, directory: int) -> Collection[int]:
        """Return the members that are *directory* or lie anywhere below it, in the order in which they were added."""
        return self._members.get(directory, _NONE).keys()
