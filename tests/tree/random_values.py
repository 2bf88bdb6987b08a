"""The values that random changes choose from: few names, so that they collide, and positions at the edges of chunks."""

import stat

from tests.tree.planned_tree import BEGINNING, SECOND
from vfsd.tree.change import CHUNK_SIZE
from vfsd.tree.tree import MILLISECOND

NAMES = [b"a", b"b", b"c", b"\xff", b"n" * 256]
MAYBE_NAMES: list[bytes | None] = [None] * len(NAMES) + NAMES
POSITIONS = [0, 1, 5, CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 1, 2 * CHUNK_SIZE, 3 * CHUNK_SIZE - 7]
COUNTS = [0, 1, 6, CHUNK_SIZE - 1, CHUNK_SIZE, CHUNK_SIZE + 2, 2 * CHUNK_SIZE]
CHUNKS = [b"\0", b"\0", b"x", b"y", b"\0z"]
KINDS = [stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO]
MODES = [0o644, 0o2755, 0, 0o7777]
IDS = [0, 1, 2, 3]
TIMES = [BEGINNING, BEGINNING + SECOND // 2, BEGINNING + 2 * SECOND, 0, -1, 2**63 - 1]
XATTRS = [b"user.a", b"user.b"]
VALUES = [b"", b"value", bytes(65_536), bytes(65_537)]
FLAGS = [0, 0, 0, 1, 2, 2, 3, 4]
ELAPSED = [1, MILLISECOND // 3, MILLISECOND, 3 * MILLISECOND]
CHOICES = range(128)
"""Numbers that stand for a node or a key: see :meth:`tests.tree.tree_and_model.TreeAndModel.node`."""
